import io
import socket

import pytest

from kubewright.cluster.processes import ports
from kubewright.cluster.processes.progress import PlainLine
from kubewright.errors import ClusterError


def test_free_ports_are_distinct_and_below_the_range_of_outgoing_connections() -> None:
    found = ports.free_ports(5)

    assert len(set(found)) == 5
    assert all(20_000 <= port < 32_000 for port in found)


def test_a_port_somebody_listens_on_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "_FIRST", port)
        monkeypatch.setattr(ports, "_LAST", port + 1)

        with pytest.raises(ClusterError, match="No free port"):
            ports.free_ports(1)


def test_a_plain_line_is_rewritten_in_place_and_cleared_at_the_end() -> None:
    stream = io.StringIO()
    line = PlainLine(stream)

    line("building", 1, 4)
    line("")

    assert stream.getvalue() == "\r\x1b[Kbuilding 25 %\r\x1b[K"
