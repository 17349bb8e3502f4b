import io

from rich.console import Console

from kubewright.cli.progress import Display


def test_without_a_terminal_each_step_is_one_line() -> None:
    stream = io.StringIO()
    display = Display(Console(file=stream, force_terminal=False))

    display("fetching")
    display("compiling [etcd]", 1, 10)
    display("compiling [etcd]", 2, 10)
    display("")

    assert stream.getvalue() == "fetching ...\ncompiling [etcd] ...\n"


def test_on_a_terminal_a_bar_is_drawn_and_taken_away() -> None:
    stream = io.StringIO()
    display = Display(Console(file=stream, force_terminal=True, width=80))

    display("fetching")
    display("compiling [etcd]", 5, 10)
    display.close()

    assert "compiling [etcd]" in stream.getvalue()
    assert "━" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")


def test_what_is_done_at_once_is_not_shown() -> None:
    stream = io.StringIO()
    display = Display(Console(file=stream, force_terminal=False), after=3600)

    display("reading", 1, 10)
    display.close()

    assert stream.getvalue() == ""
