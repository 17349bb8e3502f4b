"""The shape of the code: modules one can read in a sitting, and each library known to as few of them as can be.

Covers: kubewright
"""

from __future__ import annotations

import re
from pathlib import Path

import kubewright

ROOT = Path(kubewright.__file__).parent
SOURCES = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] != "k8s"]
IMPORT = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)

OWNERS = {
    "aiohttp": {"client/transport/aiohttp_transport.py"},
    "httptools": {"apiserver/outbound/http_client.py", "client/transport/connections.py"},
    "sortedcontainers": {"apiserver/storage/store.py"},
    "yaml": {"_base/yaml.py"},
    "cryptography": {"apiserver/auth/tokens.py", "_base/certificates.py", "_base/certificate_requests.py"},
    "uvloop": {"_base/loop.py"},
    "prometheus_client": {"_base/metrics.py"},
    "opentelemetry": {"_base/tracing.py"},
    "jinja2": {"scaffold/templates.py"},
    "watchfiles": {"cli/commands/dev.py"},
    "click": "cli/",
    "rich": "cli/",
}


def test_no_module_is_longer_than_six_hundred_lines() -> None:
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in SOURCES}

    assert {name: length for name, length in lengths.items() if length > 600} == {}
    assert sorted(lengths.values())[len(lengths) // 2] <= 200


def test_each_library_has_its_own_module() -> None:
    imported: dict[str, set[str]] = {library: set() for library in OWNERS}
    for path in SOURCES:
        for library in set(IMPORT.findall(path.read_text())) & OWNERS.keys():
            imported[library].add(path.relative_to(ROOT).as_posix())

    for library, owner in OWNERS.items():
        names = imported[library]
        if isinstance(owner, str):
            names = {owner if name.startswith(owner) else name for name in names}
            owner = {owner}
        assert names == owner, library
