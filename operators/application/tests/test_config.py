"""The hash of a ConfigMap: it changes with the data and with nothing else."""

from hypothesis import given
from hypothesis import strategies as some
from kubewright import ObjectMeta
from kubewright.k8s.core.v1 import ConfigMap

from application.api.v1alpha1.application import Application, ApplicationSpec, ConfigReference
from application.config import Configuration, config_names, hash_of

DATA = some.dictionaries(some.text(), some.text())
BINARY = some.dictionaries(some.text(), some.binary())


@given(DATA, BINARY)
def test_the_order_of_entries_does_not_matter(data: dict[str, str], binary: dict[str, bytes]) -> None:
    backwards = ConfigMap(data=dict(reversed(data.items())), binary_data=dict(reversed(binary.items())))

    assert hash_of(ConfigMap(data=data, binary_data=binary)) == hash_of(backwards)


@given(DATA, DATA)
def test_other_data_have_another_hash(one: dict[str, str], two: dict[str, str]) -> None:
    assert (hash_of(ConfigMap(data=one)) == hash_of(ConfigMap(data=two))) == (one == two)


def test_binary_data_count_and_labels_do_not() -> None:
    plain = ConfigMap(data={"A": "1"})

    assert hash_of(plain) != hash_of(ConfigMap(data={"A": "1"}, binary_data={"B": b"\xff"}))
    assert hash_of(plain) == hash_of(ConfigMap(metadata=ObjectMeta(labels={"new": "label"}), data={"A": "1"}))


def test_a_missing_configuration_is_told_from_none_at_all() -> None:
    assert not Configuration().missing
    assert Configuration("settings").missing
    assert not Configuration("settings", hash_of(ConfigMap())).missing


def test_an_application_is_indexed_by_what_it_refers_to() -> None:
    refers = Application(spec=ApplicationSpec(image="nginx", config_ref=ConfigReference(name="settings")))

    assert list(config_names(refers)) == ["settings"]
    assert list(config_names(Application(spec=ApplicationSpec(image="nginx")))) == []
