"""`tests/rerun.py` reruns what failed on the real servers, and nothing else.

Covers: tests.rerun
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ONCE = """
import pathlib

def fails_once(name):
    seen = pathlib.Path(name)
    was_there = seen.exists()
    seen.touch()
    assert was_there
"""
CONFIGURED = "[pytest]\nmarkers = real: on the real servers\n"


@pytest.fixture
def plugin_folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of tests in which some fail once, where the plugin can be loaded."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer to import than the tests to run
    pytester.makeini(CONFIGURED)
    pytester.makepyfile(once=ONCE)
    return pytester


def twice(pytester: pytest.Pytester, source: str) -> pytest.RunResult:
    """Run tests, then rerun those that failed."""
    pytester.makepyfile(test_it=f"import pytest\nfrom once import fails_once\n{source}")
    assert pytester.runpytest_subprocess().ret == pytest.ExitCode.TESTS_FAILED
    return pytester.runpytest_subprocess("-p", "rerun", "--last-failed", "--last-failed-no-failures", "none")


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.real\ndef test_one(): fails_once('one')",
        "@pytest.mark.parametrize('plane', ['real'])\ndef test_one(plane): fails_once('one')",
        "@pytest.fixture\ndef real_binaries(): pass\ndef test_one(real_binaries): fails_once('one')",
    ],
)
def test_what_passes_alone_is_named_as_flaky(plugin_folder: pytest.Pytester, source: str) -> None:
    result = twice(plugin_folder, source + "\ndef test_two(): pass")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["FLAKY test_it.py::test_one*"])


def test_what_fails_again_is_a_failure(plugin_folder: pytest.Pytester) -> None:
    result = twice(plugin_folder, "@pytest.mark.real\ndef test_one(): assert False")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line("FLAKY*")


def test_a_failure_without_the_real_servers_is_enough(plugin_folder: pytest.Pytester) -> None:
    result = twice(
        plugin_folder,
        "@pytest.mark.real\ndef test_one(): fails_once('one')\ndef test_two(): fails_once('two')",
    )

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes()
    assert "no rerun: 1 failed that must never, such as test_it.py::test_two" in str(result.stdout)


def test_a_failed_scenario_is_enough(plugin_folder: pytest.Pytester) -> None:
    folder = plugin_folder.mkpydir("scenarios")
    (folder / "test_two.py").write_text("import pytest\n@pytest.mark.real\ndef test_two(): assert False\n")

    result = twice(plugin_folder, "@pytest.mark.real\ndef test_one(): fails_once('one')")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "no rerun: 1 failed that must never, such as scenarios/test_two.py::test_two" in str(result.stdout)


def test_many_failures_are_no_accident(plugin_folder: pytest.Pytester) -> None:
    result = twice(
        plugin_folder, "@pytest.mark.real\n@pytest.mark.parametrize('n', range(4))\ndef test_one(n): fails_once(str(n))"
    )

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "no rerun: 4 tests failed, more than 3" in str(result.stdout)
