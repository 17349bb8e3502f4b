from pathlib import Path

from kubewright.cluster.pki.files import Pki


def test_cas_and_the_service_account_key_are_reused_and_the_rest_is_new(tmp_path: Path) -> None:
    first = Pki.prepare(persistent=tmp_path / "kept", temporary=tmp_path / "one")
    second = Pki.prepare(persistent=tmp_path / "kept", temporary=tmp_path / "two")

    assert first.ca == second.ca
    assert Path(first.key("service-account")) == Path(second.key("service-account"))
    assert Path(first.key("server")).read_bytes() != Path(second.key("server")).read_bytes()


def test_no_key_can_be_read_by_others(tmp_path: Path) -> None:
    Pki.prepare(persistent=tmp_path / "kept", temporary=tmp_path / "fresh")

    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.key")}
    assert len(modes) == 6
    assert set(modes.values()) == {0o600}
