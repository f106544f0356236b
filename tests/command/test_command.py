"""The command as a process: from its first moment on, with any terminal, and whoever reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import clsparse_command

ROOT = Path(clsparse_command.__file__).parent

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")

_STOPPED = """
import os, signal, sys
import clsparse_command

class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.argv[1:] = ["devices"]
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Stop())
sys.exit(clsparse_command.main())
"""


@pytest.mark.parametrize("when", ["clsparse_py", "numpy", "pyopencl", "clsparse_py._command.cli", "clsparse_py._command.demo"])
def test_ctrl_c_while_it_starts_is_no_error(when: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED, when], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (130, "clsparse: stopped\n")


def test_ctrl_c_in_the_demo_is_no_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: object) -> Iterator[object]:
        raise KeyboardInterrupt

    monkeypatch.setattr("clsparse_py._command.demo.samples", stop)
    monkeypatch.setattr(sys, "argv", ["clsparse", "demo"])
    assert clsparse_command.main() == clsparse_command.INTERRUPTED
    assert capsys.readouterr().err.splitlines()[-1] == "clsparse: stopped"


@pytest.mark.parametrize("arguments", [["devices"], ["source"], ["profile", "show", "generic-cpu"]])
def test_a_reader_that_has_seen_enough_is_no_error(arguments: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "clsparse_command", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.close()
        assert done.stderr.read() == b""
    assert done.returncode == 0


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in which `clsparse` is the command."""
    line = f'clsparse() {{ "{sys.executable}" -m clsparse_command "$@"; }}; {command}'
    given = {**os.environ, **environment}
    return subprocess.run(["/bin/sh", "-c", line], cwd=ROOT, env=given, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_output_that_is_closed_is_no_error(closed: str) -> None:
    done = shell(f"clsparse profile show generic-cpu {closed}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", ["source", "profile show generic-cpu"])
def test_output_that_cannot_be_written_is_a_line(arguments: str) -> None:
    done = shell(f"clsparse {arguments} > /dev/full")
    assert (done.returncode, done.stderr) == (1, "clsparse: [Errno 28] No space left on device\n")


def test_a_profile_is_exported_to_a_pipe_and_to_where_the_output_goes(tmp_path: Path) -> None:
    done = shell("clsparse profile export /dev/stdout generic-cpu | cat")
    assert '"name": "generic-cpu"' in done.stdout
    done = shell(f"clsparse profile export /dev/stdout generic-cpu > {tmp_path}/out.json")
    assert done.returncode == 0
    assert json.loads((tmp_path / "out.json").read_text())["name"] == "generic-cpu"


@pytest.mark.parametrize(
    "environment",
    [
        {"COLUMNS": "1"},
        {"COLUMNS": "abc", "NO_COLOR": "1", "FORCE_COLOR": "1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii", "TERM": "dumb"},
    ],
)
def test_any_terminal_and_locale_will_do(environment: dict[str, str]) -> None:
    done = shell("clsparse profile show", **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
