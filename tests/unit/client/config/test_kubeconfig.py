"""Kubeconfig files are read, merged and written as kubectl does, and errors name file and field."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from kubewright._base import yaml
from kubewright.client.config import kubeconfig
from kubewright.errors import ConfigError


def tree(name: str = "a", **cluster: Any) -> dict[str, Any]:
    return {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}", **cluster}}],
        "users": [{"name": name, "user": {"token": f"token-of-{name}"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def written(folder: Path, name: str, content: dict[str, Any] | str) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.dump(content))
    return path


def complaint(path: Path, context: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        kubeconfig.select(kubeconfig.read(path), context)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_current_context_is_selected(tmp_path: Path) -> None:
    found = kubeconfig.select(kubeconfig.read(written(tmp_path, "c", tree("a"))))

    assert found.context == "a"
    assert found.namespace == "default"
    assert found.cluster.value.server == "https://a"
    assert found.user.value.token == "token-of-a"


def test_a_named_context_beats_the_current_one(tmp_path: Path) -> None:
    both = tree("a")
    for field, entries in tree("b").items():
        if isinstance(entries, list):
            both[field] += entries

    found = kubeconfig.select(kubeconfig.read(written(tmp_path, "c", both)), "b")

    assert found.cluster.value.server == "https://b"


def test_of_several_files_the_first_wins_for_each_entry_and_for_the_current_context(tmp_path: Path) -> None:
    first = tree("a", **{"tls-server-name": "first"})
    del first["current-context"]
    second = tree("a", **{"proxy-url": "http://second"})
    second["clusters"].append({"name": "b", "cluster": {"server": "https://b"}})
    third = tree("c")

    merged = kubeconfig.merge(
        [
            kubeconfig.read(written(tmp_path, name, content))
            for name, content in (("1", first), ("2", second), ("3", third))
        ]
    )

    assert merged.current_context == "a"
    assert merged.clusters["a"].value.tls_server_name == "first"
    assert merged.clusters["a"].value.proxy_url == ""
    assert set(merged.clusters) == {"a", "b", "c"}
    assert merged.title == f"kubeconfig {tmp_path}/1, kubeconfig {tmp_path}/2, kubeconfig {tmp_path}/3"


def test_each_entry_remembers_the_folder_it_stands_in(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    one = kubeconfig.read(written(tmp_path / "x", "c", tree("a")))
    two = kubeconfig.read(written(tmp_path, "c", tree("b")))

    merged = kubeconfig.merge([two, one])

    assert merged.clusters["a"].path("ca.crt") == tmp_path / "x" / "ca.crt"
    assert merged.clusters["b"].path("ca.crt") == tmp_path / "ca.crt"
    assert merged.clusters["b"].path("/ca.crt") == Path("/ca.crt")


def test_nulls_and_unknown_fields_do_not_matter(tmp_path: Path) -> None:
    content = tree("a") | {"preferences": {}, "extensions": None, "colour": "red"}
    content["users"][0]["user"]["exec"] = None

    found = kubeconfig.select(kubeconfig.read(written(tmp_path, "c", content)))

    assert found.user.value.exec_ is None
    assert kubeconfig.read(written(tmp_path, "d", "users: null\nclusters: null\n")).users == {}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a: [", "is not YAML: line 2, column 1: did not find expected node content"),
        ("just text", "is no kubeconfig: it must be a mapping with clusters, users and contexts"),
        ("", "has no current-context; set it, or name a context (there: none)"),
        ("kind: Pod", "is no kubeconfig: its kind is 'Pod' and not 'Config'"),
        ("clusters: 1", "clusters must be a list and is a number"),
        ("clusters: [{name: a, cluster: {server: 1}}]", "clusters[0].cluster.server must be text and is a number"),
        ("users: [{user: {}}]", "users[0].name is missing; every entry needs one"),
        ("users: [{name: a}, {name: a}]", "users[1].name 'a' is taken by an entry before it"),
        ("contexts: [{name: a}]", "has no current-context; set it, or name a context (there: a)"),
        ("current-context: a", "has no such context as its current-context 'a'; there: none"),
    ],
)
def test_a_malformed_file_is_named_with_its_field(tmp_path: Path, content: str, sentence: str) -> None:
    path = written(tmp_path, "c", content)

    assert complaint(path) in (f"kubeconfig {path} {sentence}", f"kubeconfig {path}: {sentence}")


def test_a_context_that_names_nothing_known_is_named(tmp_path: Path) -> None:
    content = tree("a")
    content["contexts"] += [
        {"name": "b", "context": {"cluster": "x", "user": "a"}},
        {"name": "c", "context": {"cluster": "a", "user": "y"}},
        {"name": "d", "context": {"user": "a"}},
        {"name": "e", "context": {"cluster": "a", "user": "a", "namespace": "No/good"}},
    ]
    path = written(tmp_path, "c", content)
    at = f"kubeconfig {path}: contexts"

    assert complaint(path, "b") == f"{at}[1].context.cluster names 'x', which is not among the clusters (a)"
    assert complaint(path, "c") == f"{at}[2].context.user names 'y', which is not among the users (a)"
    assert complaint(path, "d") == f"{at}[3].context.cluster is missing; name one of: a"
    assert complaint(path, "e") == f"{at}[4].context.namespace 'No/good' cannot be the name of a namespace"
    assert complaint(path, "z") == f"kubeconfig {path} has no context 'z'; there: a, b, c, d, e"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert complaint(tmp_path / "none") == f"kubeconfig {tmp_path}/none does not exist"
    assert complaint(tmp_path) == f"kubeconfig {tmp_path} cannot be read: Is a directory"


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    content = tree("a")
    content["users"][0]["user"] |= {
        "password": "hunter2",
        "exec": {"command": "x", "args": ["hunter2"], "env": [{"name": "A", "value": "hunter2"}]},
    }

    read = kubeconfig.read(written(tmp_path, "c", content))

    assert "hunter2" not in repr(read)
    assert "token-of-a" not in repr(read)
    assert "hunter2" not in repr(read.users["a"].value.exec_)


def test_a_written_kubeconfig_is_private_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "admin.conf"
    made = kubeconfig.kubeconfig_tree(
        name="dev",
        server="https://127.0.0.1:1",
        ca_data=b"CA",
        client_certificate=b"C",
        client_key=b"K",
        user="admin",
        namespace="shop",
        tls_server_name="kubernetes",
    )

    kubeconfig.write(path, made)

    found = kubeconfig.select(kubeconfig.read(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [path] == list(path.parent.iterdir())
    assert found.namespace == "shop"
    assert found.cluster.value.tls_server_name == "kubernetes"
    assert kubeconfig.decode_base64(found.cluster, "x", found.cluster.value.certificate_authority_data) == b"CA"
    assert kubeconfig.decode_base64(found.user, "x", found.user.value.client_key_data) == b"K"


def test_merging_into_a_file_replaces_the_same_names_and_keeps_all_else(tmp_path: Path) -> None:
    old = tree("a", server="https://old") | {"preferences": {"colors": True}}
    old["clusters"].insert(0, {"name": "z", "cluster": {"server": "https://z"}, "note": "kept"})
    path = written(tmp_path, "c", old)

    kubeconfig.merge_into(path, kubeconfig.kubeconfig_tree(name="a", server="https://new", token="t"))
    kubeconfig.merge_into(path, kubeconfig.kubeconfig_tree(name="b", server="https://b", token="t"))

    new = yaml.load(path.read_text())
    assert [entry["cluster"]["server"] for entry in new["clusters"]] == ["https://z", "https://new", "https://b"]
    assert new["clusters"][0]["note"] == "kept"
    assert new["preferences"] == {"colors": True}
    assert new["current-context"] == "b"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.with_name("c.lock").exists()


def test_merging_makes_the_file_and_follows_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real" / "config")

    kubeconfig.merge_into(link, tree("a"))

    assert link.is_symlink()
    assert yaml.load((tmp_path / "real" / "config").read_text())["current-context"] == "a"


def test_merging_refuses_a_file_that_is_locked_or_broken_and_leaves_it_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "c", "a: [")
    with pytest.raises(ConfigError, match="is not YAML"):
        kubeconfig.merge_into(path, tree("a"))
    lock = written(tmp_path, "c.lock", "")

    with pytest.raises(ConfigError) as caught:
        kubeconfig.merge_into(path, tree("a"))

    assert (
        str(caught.value) == f"kubeconfig {path} is being changed by another program; if there is none, remove {lock}"
    )
    assert path.read_text() == "a: ["
