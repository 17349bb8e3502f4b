"""JSON that is cheap to send and dear to read."""

from __future__ import annotations

from tests.security.harness.attack import CONFIG_MAPS, Target, attack, many
from tests.security.harness.exchange import Answer

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SIZE = 2_900_000


def _map(inside: bytes, name: bytes = b"json") -> bytes:
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},%s}' % (name, inside)


@attack(by="editor")
async def one_name_many_times(on: Target) -> Answer:
    """The same member again and again."""
    return await on.post(CONFIG_MAPS, _map(b'"data":{' + b",".join([b'"a":"b"'] * many(8)) + b"}"))


@attack(by="nobody")
async def one_name_many_times_in_a_review(on: Target) -> Answer:
    """The same unknown member again and again, in an object that everybody may send."""
    return await on.post(_REVIEWS, b'{"spec":{' + b",".join([b'"a":1'] * many(6)) + b"}}")


@attack(by="nobody")
async def many_names_twice(on: Target) -> Answer:
    """A hundred thousand names, each said twice."""
    names = b",".join(b'"n%d":1' % number for number in range(many(24, values=2)))
    return await on.post(_REVIEWS, b'{"spec":{' + names + b"," + names + b"}}")


@attack(by="nobody")
async def unknown_fields(on: Target) -> Answer:
    """Two hundred thousand fields that the kind does not have, validated strictly."""
    names = b",".join(b'"n%d":1' % number for number in range(many(12)))
    return await on.post(_REVIEWS + "?fieldValidation=Strict", b'{"spec":{' + names + b"}}")


@attack(by="nobody")
async def unknown_fields_with_warnings(on: Target) -> Answer:
    """The same with a warning for each."""
    names = b",".join(b'"n%d":1' % number for number in range(many(12)))
    return await on.post(_REVIEWS + "?fieldValidation=Warn", b'{"spec":{' + names + b"}}")


@attack(by="nobody")
async def empty_objects(on: Target) -> Answer:
    """A list of a million empty objects where a field is not known."""
    return await on.post(_REVIEWS, b'{"spec":{"x":[' + b",".join([b"{}"] * many(3, values=2)) + b"]}}")


@attack(by="editor")
async def empty_containers(on: Target) -> Answer:
    """A Pod with a million empty containers, each of which has defaults."""
    body = b'{"metadata":{"name":"p"},"spec":{"containers":[' + b",".join([b"{}"] * many(3, values=2)) + b"]}}"
    return await on.post("/api/v1/namespaces/edited/pods", body)


@attack(by="editor")
async def many_ports(on: Target) -> Answer:
    """A Pod with a container of two hundred thousand ports, all wrong."""
    ports = b",".join([b'{"a":1}'] * many(8, values=2))
    body = b'{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","ports":[' + ports + b"]}]}}"
    return await on.post("/api/v1/namespaces/edited/pods", body)


@attack(by="editor")
async def many_equal_ports(on: Target) -> Answer:
    """A Pod with a container whose ports all have one name."""
    ports = b",".join([b'{"name":"a","containerPort":80}'] * many(33, values=3))
    body = b'{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","ports":[' + ports + b"]}]}}"
    return await on.post("/api/v1/namespaces/edited/pods", body)


@attack(by="editor")
async def many_variables(on: Target) -> Answer:
    """A Pod with a hundred thousand environment variables."""
    names = b",".join(b'{"name":"v%d"}' % number for number in range(many(18, values=2)))
    body = b'{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","env":[' + names + b"]}]}}"
    return await on.post("/api/v1/namespaces/edited/pods", body)


@attack(by="editor")
async def many_volumes(on: Target) -> Answer:
    """A Pod with a hundred thousand volumes of one name."""
    names = b",".join([b'{"name":"v","emptyDir":{}}'] * many(28, values=4))
    body = b'{"metadata":{"name":"p"},"spec":{"volumes":[' + names + b'],"containers":[{"name":"c","image":"i"}]}}'
    return await on.post("/api/v1/namespaces/edited/pods", body)


@attack(by="editor")
async def many_labels(on: Target) -> Answer:
    """A hundred and fifty thousand labels."""
    labels = b",".join(b'"l%d":"v"' % number for number in range(many(14)))
    return await on.post(CONFIG_MAPS, b'{"metadata":{"name":"labels","labels":{' + labels + b"}}}")


@attack(by="editor")
async def many_bad_labels(on: Target) -> Answer:
    """As many labels, none of them allowed."""
    labels = b",".join(b'"/%d":"-"' % number for number in range(many(13)))
    return await on.post(CONFIG_MAPS, b'{"metadata":{"name":"labels","labels":{' + labels + b"}}}")


@attack(by="editor")
async def many_owners(on: Target) -> Answer:
    """Owner references without end."""
    owner = b'{"apiVersion":"v1","kind":"Pod","name":"a","uid":"u%d"}'
    owners = b",".join(owner % number for number in range(many(64, values=5)))
    return await on.post(CONFIG_MAPS, b'{"metadata":{"name":"owners","ownerReferences":[' + owners + b"]}}")


@attack(by="editor")
async def many_finalizers(on: Target) -> Answer:
    """Finalizers without end, all wrong."""
    return await on.post(
        CONFIG_MAPS, b'{"metadata":{"name":"f","finalizers":[' + b",".join([b'"/"'] * many(4)) + b"]}}"
    )


@attack(by="editor")
async def a_long_string(on: Target) -> Answer:
    """One string of the largest size, with an escape in each place."""
    return await on.post(CONFIG_MAPS, _map(b'"data":{"a":"' + b"\\u00e9" * (_SIZE // 6) + b'"}'))


@attack(by="editor")
async def a_long_number(on: Target) -> Answer:
    """A number with three million digits."""
    return await on.post(CONFIG_MAPS, _map(b'"data":{"a":' + b"9" * _SIZE + b"}"))


@attack(by="editor")
async def many_long_numbers(on: Target) -> Answer:
    """Numbers of four thousand digits, each of which Python would make an integer."""
    return await on.post(CONFIG_MAPS, _map(b'"x":[' + b",".join([b"9" * 4000] * 700) + b"]"))


@attack(by="editor")
async def a_large_exponent(on: Target) -> Answer:
    """Quantities with exponents that no machine could write out."""
    limits = b'{"limits":{"cpu":"1e1000000000","memory":"' + b"9" * 1_000_000 + b'"}}'
    body = b'{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i","resources":' + limits + b"}]}}"
    return await on.post("/api/v1/namespaces/edited/pods", body)


@attack(by="editor")
async def many_quantities(on: Target) -> Answer:
    """A hundred thousand resources with quantities of odd forms."""
    limits = b",".join(b'"example.com/r%d":"1e-9"' % number for number in range(many(28)))
    body = b'{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{'
    return await on.post("/api/v1/namespaces/edited/pods", body + limits + b"}}}]}}")


@attack(by="editor")
async def bad_utf8(on: Target) -> Answer:
    """A string with a byte in each second place that is no UTF-8."""
    return await on.post(CONFIG_MAPS, _map(b'"data":{"a":"' + b"a\xff" * (_SIZE // 2) + b'"}'))


@attack(by="editor")
async def bad_base64(on: Target) -> Answer:
    """A Secret with a hundred thousand values that are no base64."""
    data = b",".join(b'"k%d":"!"' % number for number in range(many(13)))
    return await on.post("/api/v1/namespaces/edited/secrets", b'{"metadata":{"name":"s"},"data":{' + data + b"}}")


@attack(by="editor")
async def bad_keys(on: Target) -> Answer:
    """A ConfigMap with two hundred thousand keys that are not allowed."""
    data = b",".join(b'"/%d":""' % number for number in range(many(12)))
    return await on.post(CONFIG_MAPS, _map(b'"data":{' + data + b"}"))


@attack(by="editor")
async def a_full_configmap(on: Target) -> Answer:
    """A hundred thousand keys within the size that is allowed."""
    data = b",".join(b'"%d":""' % number for number in range(95_000))
    return await on.post(CONFIG_MAPS, _map(b'"data":{' + data + b"}", b"full"))


@attack(by="anonymous")
async def a_large_body_without_login(on: Target) -> Answer:
    """Three million bytes from nobody."""
    return await on.post(CONFIG_MAPS, _map(b'"data":{' + b",".join([b'"a":"b"'] * 350_000) + b"}"))


@attack(by="editor")
async def numbers_at_the_end_of_the_range(on: Target) -> Answer:
    """A hundred thousand numbers that take long to be read exactly."""
    return await on.post(CONFIG_MAPS, b'{"data":{"a":[' + b",".join([b"1.7976931348623157e+308"] * many(24)) + b"]}}")
