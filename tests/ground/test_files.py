"""Files that are replaced whole or stay as they were, and which ones are trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from clsparse_py._ground.files import distrust, make_private, replacing, write_text

ON_POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)  # a name beside it that is longer would be too long
    write_text(path, "old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_fails_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    write_text(path, "old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@ON_POSIX
def test_permissions_are_kept_and_new_files_have_the_usual_ones(tmp_path: Path) -> None:
    path, usual = tmp_path / "file", tmp_path / "usual"
    usual.touch()
    write_text(path, "new")
    assert path.stat().st_mode == usual.stat().st_mode
    path.chmod(0o640)
    write_text(path, "newer")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with replacing(tmp_path / "private", private=True) as file:
        file.write(b"x")
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600


@ON_POSIX
def test_links_keep_naming_their_files_and_devices_stay(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    link.symlink_to(file)
    write_text(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    write_text(null, "nothing")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("below", ["none/file", "a-file/below"])
def test_errors_name_the_file_that_was_asked_for(tmp_path: Path, below: str) -> None:
    (tmp_path / "a-file").touch()
    with pytest.raises(OSError, match="file") as caught:
        write_text(tmp_path / below, "x")
    assert caught.value.filename == str(tmp_path / below)
    assert [path.name for path in tmp_path.iterdir()] == ["a-file"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_text(tmp_path / "full", "x")
    assert caught.value.filename == str(tmp_path / "full")


@ON_POSIX
def test_who_may_have_written_a_file_decides_whether_it_is_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "folder"
    before = os.umask(0o002)
    try:
        make_private(folder)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(directory.stat().st_mode) for directory in (folder, folder.parent)] == [0o700, 0o700]
    make_private(folder)
    assert distrust(folder.stat()) is None
    for mode, trusted in ((0o755, True), (0o775, False), (0o702, False), (0o1777, False)):
        folder.chmod(mode)
        reason = distrust(folder.stat())
        assert (reason is None) == trusted
        assert trusted or reason == "other users may write to it"
    result = list(folder.stat())
    result[stat.ST_UID] = os.geteuid() + 1
    assert distrust(os.stat_result(result)) == f"it belongs to user {os.geteuid() + 1}, not to user {os.geteuid()}"


def test_where_permissions_are_not_posix_all_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "geteuid", raising=False)
    tmp_path.chmod(0o777)
    assert distrust(tmp_path.stat()) is None
