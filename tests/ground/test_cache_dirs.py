"""Homes that are not there, are files or cannot be written to, no temporary folder, and clocks that are wrong."""

from __future__ import annotations

import ast
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from platforms import PLATFORMS

import clsparse_py
from clsparse_py._ground import cache_dirs

pytestmark = pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="folders that the environment names")

_PRODUCTS = """
import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(name)s: %(message)s")
import numpy as np, pyopencl as cl, scipy.sparse as sp
import clsparse_py
(device,) = [each for each in clsparse_py.devices() if each.platform.name == sys.argv[1]][:1]
context = cl.Context([device])
A = clsparse_py.csr_array(sp.eye_array(50, dtype=np.float32, format="csr"), queue=cl.CommandQueue(context, device))
assert ((A @ np.arange(50, dtype=np.float32)) == np.arange(50)).all()
print("right")
"""

#: By what is wrong: variables, of which FILE is a file and NONE is not there.
HOMES = {
    "a home that is a file": {"HOME": "FILE"},
    "a home below a file": {"HOME": "FILE/below"},
    "a home that is not there": {"HOME": "NONE/home"},
    "folders below a file": {"XDG_CACHE_HOME": "FILE/c", "XDG_DATA_HOME": "FILE/d"},
    "folders where none can be made": {"XDG_CACHE_HOME": "/proc", "XDG_DATA_HOME": "/proc"},
    "PoCL's folder below a file": {"POCL_CACHE_DIR": "FILE/pocl"},
    "all below a file": {"HOME": "FILE", "TMPDIR": "FILE/tmp", "CLSPARSE_CACHE_DIR": "FILE/c", "CLSPARSE_PROFILES": "FILE/p"},
}


# Each case on one platform, in turns; that of PoCL's own folder falls to PoCL.
@pytest.mark.parametrize(("wrong", "platform"), [*zip(HOMES, itertools.cycle(sorted(PLATFORMS, reverse=True)), strict=False)])
def test_products_are_right_whatever_the_home_is(tmp_path: Path, wrong: str, platform: str) -> None:
    (tmp_path / "file").touch()
    environment = {name: value for name, value in os.environ.items() if name not in ("CLSPARSE_CACHE_DIR", "XDG_CACHE_HOME")}
    for name, value in HOMES[wrong].items():
        environment[name] = value.replace("FILE", str(tmp_path / "file")).replace("NONE", str(tmp_path / "none"))
    done = subprocess.run(
        [sys.executable, "-c", _PRODUCTS, PLATFORMS[platform].platform.name],
        env=environment, capture_output=True, text=True, timeout=240, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *said, last = done.stdout.splitlines()
    assert last == "right"
    # Each trouble is one line, not one a kernel.
    assert len(said) == len(set(said)) <= 4
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("file", "none")] == []


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache_dirs.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cache_dirs.atexit, "register", lambda *_: None)
    monkeypatch.delenv("POCL_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_can_be_written_is_left_alone(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache_dirs.provide()
    (cache / "pytools").mkdir(parents=True)
    cache_dirs.provide()
    assert os.environ["XDG_CACHE_HOME"] == str(cache)
    assert not caplog.records
    assert [path.name for path in cache.iterdir()] == ["pytools"]


@pytest.mark.parametrize("below", ["pytools", "pocl", "pocl/kcache"])
def test_a_folder_of_anothers_is_replaced(
    cache: Path, below: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (cache / below).mkdir(parents=True)
    # Permissions do not stop the superuser.
    mkdir = Path.mkdir

    def mkdir_of_another(self: Path, *args: Any, **named: Any) -> None:
        if self.parent == cache / below:
            raise PermissionError(13, "Permission denied")
        mkdir(self, *args, **named)

    monkeypatch.setattr(Path, "mkdir", mkdir_of_another)
    cache_dirs.provide()
    replaced = Path(os.environ["XDG_CACHE_HOME"])
    assert replaced != cache
    assert replaced.stat().st_mode & 0o077 == 0
    assert "cannot be written to: kernels are kept in a temporary folder" in caplog.text
    cache_dirs._remove(str(replaced), os.getpid() + 1)
    assert replaced.is_dir()
    cache_dirs._remove(str(replaced), os.getpid())
    assert not replaced.exists()


def test_without_a_temporary_folder_it_is_said(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache.touch()

    def nowhere(**_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(cache_dirs.tempfile, "mkdtemp", nowhere)
    cache_dirs.provide()
    assert os.environ["XDG_CACHE_HOME"] == str(cache)
    assert "there is no temporary folder either" in caplog.text


def test_a_user_without_a_home_has_a_temporary_one(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda: "~/.cache")
    cache_dirs.provide()
    assert Path(os.environ["XDG_CACHE_HOME"]).is_dir()
    assert Path(os.environ["XDG_CACHE_HOME"]) != cache


def test_no_clock_that_can_be_set_is_read() -> None:
    """But for the date of a profile: durations and deadlines are told by clocks that only go forward."""
    read = []
    for path in Path(clsparse_py.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("time.time", "datetime.datetime.now", "datetime.now"):
                read.append(f"{path.name}: {ast.unparse(node)}")
            assert not (isinstance(node, ast.Attribute) and node.attr in ("st_mtime", "st_atime", "st_ctime")), path
    assert read == ["outcome.py: datetime.datetime.now"]
