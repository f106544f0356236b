"""The command as a process: from its first moment on, with any terminal, and whoever reads it."""

from __future__ import annotations

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


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "clsparse_command", *arguments],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("when", ["clsparse_py", "numpy", "pyopencl", "clsparse_py.cli", "clsparse_py.demo"])
def test_ctrl_c_while_it_starts_is_no_error(when: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED, when], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (130, "clsparse: stopped\n")


def test_ctrl_c_in_the_demo_is_no_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: object) -> Iterator[object]:
        raise KeyboardInterrupt

    monkeypatch.setattr("clsparse_py.demo.samples", stop)
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
