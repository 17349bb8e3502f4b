from pathlib import Path

import yaml

from kubewright.cluster.certificates import KeyPair
from kubewright.cluster.kubeconfig import write_kubeconfig
from kubewright.cluster.pki import Pki


def test_cas_and_the_service_account_key_are_kept_and_the_rest_is_new(tmp_path: Path) -> None:
    first = Pki.prepare(kept=tmp_path / "kept", fresh=tmp_path / "one")
    second = Pki.prepare(kept=tmp_path / "kept", fresh=tmp_path / "two")

    assert first.ca == second.ca
    assert Path(first.key("service-account")) == Path(second.key("service-account"))
    assert Path(first.key("server")).read_bytes() != Path(second.key("server")).read_bytes()


def test_no_key_can_be_read_by_others(tmp_path: Path) -> None:
    Pki.prepare(kept=tmp_path / "kept", fresh=tmp_path / "fresh")

    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.key")}
    assert len(modes) == 5
    assert set(modes.values()) == {0o600}


def test_a_kubeconfig_holds_everything_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "users" / "jane"

    write_kubeconfig(path, url="https://127.0.0.1:1", ca=b"ca", user='jane: "x"', pair=KeyPair(b"cert", b"key"))

    content = yaml.safe_load(path.read_text())
    assert path.stat().st_mode & 0o777 == 0o600
    assert content["current-context"] == 'jane: "x"@kubewright'
    assert content["users"][0]["user"] == {"client-certificate-data": "Y2VydA==", "client-key-data": "a2V5"}
    assert content["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
