"""The cache on disk: whole entries come back, and whatever goes wrong costs time and a log line, never an error."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from platforms import PLATFORMS

from clsparse_py import cache


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def test_what_is_written_is_read(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = cache.key_of("a", "b")
    assert cache.read(key) is None  # no folder yet
    for payload in (b"", b"x", bytes(range(256)) * 1000):
        cache.write(key, payload)
        assert cache.read(key) == payload
    assert [path.name for path in folder.iterdir()] == [key]
    assert cache.folder() == folder
    assert not caplog.records


def test_the_users_folder_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLSPARSE_CACHE_DIR")
    assert cache.folder().name == "clsparse_py"


def test_keys_tell_parts_apart() -> None:
    keys = [cache.key_of(*parts) for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ())]
    assert len(set(keys)) == len(keys)
    assert cache.key_of("é") == cache.key_of("é")


DAMAGES = {
    "empty": lambda _: b"",
    "cut in the head": lambda whole: whole[:30],
    "cut": lambda whole: whole[:-1],
    "longer": lambda whole: whole + b"x",
    "one bit": lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]),
    "other": lambda whole: b"other" + whole,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_none(folder: Path, damage, caplog: pytest.LogCaptureFixture) -> None:
    key = cache.key_of("entry")
    cache.write(key, b"payload")
    (folder / key).write_bytes(damage((folder / key).read_bytes()))
    assert cache.read(key) is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "is damaged" in caplog.text
    cache.write(key, b"again")
    assert cache.read(key) == b"again"


def test_a_folder_that_cannot_be_made_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Below a file, as a folder's permissions do not stop the superuser.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    cache.write("key", b"payload")
    assert "nothing can be kept" in caplog.text
    assert cache.read("key") is None


def test_an_entry_that_cannot_be_read_or_replaced_is_logged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "key").mkdir(parents=True)
    assert cache.read("key") is None
    assert "cannot be read" in caplog.text
    (folder / "key" / "inside").write_text("")
    cache.write("key", b"payload")
    assert "nothing can be kept" in caplog.text
    assert [path.name for path in folder.iterdir()] == ["key"]  # nothing half-written stays


def test_writers_at_once_leave_one_whole_entry(folder: Path) -> None:
    key = cache.key_of("shared")
    payloads = [bytes([i]) * 50_000 for i in range(8)]
    seen: list[bytes | None] = []

    def work(payload: bytes) -> None:
        for _ in range(20):
            cache.write(key, payload)
            seen.append(cache.read(key))

    threads = [threading.Thread(target=work, args=(payload,)) for payload in payloads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) <= set(payloads)
    assert cache.read(key) in payloads
    assert [path.name for path in folder.iterdir()] == [key]


_PRODUCT = """
import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.WARNING)
import numpy as np, pyopencl as cl, scipy.sparse as sp
import clsparse_py
(device,) = [each for each in clsparse_py.devices() if each.platform.name == sys.argv[1]][:1]
context = cl.Context([device])
A = clsparse_py.csr_array(sp.eye_array(50, dtype=np.float32, format="csr"), queue=cl.CommandQueue(context, device))
assert ((A @ np.arange(50, dtype=np.float32)) == np.arange(50)).all()
print("right")
"""


def _start(device_platform: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", _PRODUCT, device_platform], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _lines(process: subprocess.Popen) -> list[str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.splitlines()


@pytest.mark.parametrize("platform", list(PLATFORMS))
def test_processes_share_a_cold_cache_and_survive_a_damaged_one(folder: Path, platform: str) -> None:
    name = PLATFORMS[platform].platform.name
    for process in [_start(name), _start(name)]:
        assert _lines(process) == ["right"]
    kept = list(folder.iterdir())
    assert kept
    assert not [path for path in kept if path.name.startswith(".writing")]
    for path in kept:
        path.write_bytes(path.read_bytes()[:40])
    first, *others = _lines(_start(name))
    assert first.startswith("WARNING")
    assert "is damaged" in first
    assert others[-1] == "right"
    assert _lines(_start(name)) == ["right"]  # written anew


@pytest.mark.parametrize("platform", list(PLATFORMS))
def test_a_product_needs_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", os.fspath(tmp_path / "file" / "cache"))
    lines = _lines(_start(PLATFORMS[platform].platform.name))
    assert lines[-1] == "right"
    assert any("nothing can be kept" in line for line in lines)
