"""Formats accept and refuse what the API server does; tests/differential compares many more texts with it."""

import pytest

from kubewright.schema.check.formats import format_test, is_known


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "0000-02-29", "2021-02-29"),
        ("date-time", "2020-01-01t00:00:00,5+01:00", "2020-01-01T24:00:00Z"),
        ("duration", "3 days", "3 moons"),
        ("duration", "-9223372036854775808ns", "99999999999999999999h"),
        ("ipv4", "01.02.03.004", "1.2.3.256"),
        ("ipv6", "::ffff:1.2.3.4", "fe80::1%eth0"),
        ("cidr", "10.0.0.0/08", "10.0.0.0/33"),
        ("mac", "0000.5e00.5301", "00:00:5e:00:53"),
        ("email", "Ann <a@b>", "a..b@c"),
        ("email", "g: a@b;", "g: a@b, c@d;"),
        ("uri", "/path", "path"),
        ("uri", "http://[::1]:80/é", "http://a/%zz"),
        ("hostname", "a-b", "ab-c"),
        ("hostname", "é.com", "a_b"),
        ("uuid4", "123E4567E89B42D3A456426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("isbn10", "0-8044-2957-X", "080442957x"),
        ("isbn13", "978 0321751041", "9780321751042"),
        ("creditcard", "4111 1111-1111 1111", "4111111111111112"),
        ("ssn", "123-45 6789", "123456789"),
        ("rgbcolor", "rgb( 1 , 2 , 3 )", "rgb(256,0,0)"),
        ("hexcolor", "fff", "#ffff"),
        ("byte", "YQ==", ""),
        ("bsonobjectid", "507F1F77BCF86CD799439011", "507f1f77bcf86cd79943901g"),
        ("k8s-short-name", "a-b", "a.b"),
        ("k8s-long-name", "a.b", "A"),
    ],
)
def test_a_format_takes_the_one_and_refuses_the_other(name: str, good: str, bad: str) -> None:
    test = format_test(name)

    assert test is not None
    assert test(good)
    assert not test(bad)


def test_the_dash_in_a_name_does_not_matter_and_unknown_names_have_no_test() -> None:
    assert is_known("date-time")
    assert is_known("datetime")
    assert format_test("int32") is None
