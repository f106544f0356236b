"""The cache on disk: whole entries come back, and whatever goes wrong costs time and a log line, never an error."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from platforms import PLATFORMS

from clsparse_py._ground import cache

ON_POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


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


def test_what_is_whole_and_something_else_is_none(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    def parse(payload: bytes) -> int:
        return int(payload)

    cache.write("one", b"1")
    assert cache.load("one", parse) == 1
    assert cache.load("none", parse) is None
    assert not caplog.records
    cache.write("other", b"of another version")
    assert cache.load("other", parse) is None
    assert "cache entry other cannot be used (ValueError: invalid literal" in caplog.text
    # An entry is that of its key alone.
    (folder / "other").write_bytes((folder / "one").read_bytes())
    assert cache.load("other", parse) is None
    assert "is damaged" in caplog.text


def test_each_trouble_is_a_warning_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    keys = [cache.key_of(str(number)) for number in range(5)]
    for key in keys:
        cache.write(key, b"payload")
        (folder / key).write_bytes(b"damaged")
        assert cache.read(key) is None
    assert len(caplog.records) == 1
    with caplog.at_level("DEBUG"):
        assert cache.read(keys[0]) is None
    assert caplog.records[-1].levelname == "DEBUG"


@ON_POSIX
def test_folders_are_made_for_their_owner(folder: Path) -> None:
    cache.write("key", b"payload")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600
    below = cache.make_folder("below")
    assert below == folder / "below"
    assert stat.S_IMODE(below.stat().st_mode) == 0o700


@ON_POSIX
@pytest.mark.parametrize("what", ["folder", "entry"])
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_what_others_may_have_written_is_not_taken(folder: Path, what: str, mode: int, caplog: pytest.LogCaptureFixture) -> None:
    for key in ("one", "two"):
        cache.write(key, b"payload")
        (folder / key if what == "entry" else folder).chmod(mode)
    assert cache.read("one") is None
    assert cache.read("two") is None
    assert [record.levelname for record in caplog.records].count("WARNING") <= 2  # read and written
    assert "other users may write to it" in caplog.text
    cache.write("one", b"own")
    (folder / "one").chmod(0o600)
    # In a folder that is not trusted nothing is kept either.
    assert (cache.read("one") == b"own") == (what == "entry")


@ON_POSIX
def test_what_is_anothers_is_not_taken_and_links_are_not_followed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache.write("key", b"payload")
    (tmp_path / "planted").write_bytes((folder / "key").read_bytes())
    (folder / "key").unlink()
    (folder / "key").symlink_to(tmp_path / "planted")
    assert cache.read("key") is None
    assert "cannot be read" in caplog.text
    cache.write("key", b"own")
    assert not (folder / "key").is_symlink()
    assert (tmp_path / "planted").read_bytes().endswith(b"payload")
    assert cache.read("key") == b"own"
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert cache.read("key") is None
    assert f"it belongs to user {me}, not to user {me + 1}" in caplog.text


@ON_POSIX
def test_a_shared_folder_of_roots_is_read_and_never_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shared = tmp_path / "shared"
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(shared))
    cache.write("key", b"of root's")
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(folder))
    monkeypatch.setenv("CLSPARSE_SHARED_CACHE", str(shared))
    # Whoever runs the tests takes root's part.
    monkeypatch.setattr(cache, "_ROOT", os.geteuid())
    assert cache.read("key") == b"of root's"
    cache.write("key", b"own")
    assert cache.read("key") == b"own"
    assert [path.name for path in shared.iterdir()] == ["key"]
    assert cache.read("other") is None
    assert not caplog.records
    (folder / "key").unlink()
    monkeypatch.setattr(cache, "_ROOT", os.geteuid() + 1)
    assert cache.read("key") is None
    assert "it belongs to user" in caplog.text


def test_a_user_without_a_home_has_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLSPARSE_CACHE_DIR")
    monkeypatch.setattr(cache.platformdirs, "user_cache_path", lambda name: Path("~") / ".cache" / name)
    cache.write("key", b"payload")
    assert "the user has no home folder; CLSPARSE_CACHE_DIR may name a folder" in caplog.text
    assert cache.read("key") is None
    assert not list(tmp_path.iterdir())


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
    # Beside what is kept there may be a folder of marks, of processes that build.
    kept = [path for path in folder.iterdir() if path.is_file()]
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
    assert sum("nothing can be kept" in line for line in lines) == 1
    assert sum("cannot be read" in line for line in lines) <= 1
