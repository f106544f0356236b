"""The last check of `make dist`: ``python tests/smoke.py FOLDER`` checks the wheel of a folder and works with it elsewhere.

The wheel is pure Python, under two megabytes, and holds every kernel. Installed where nothing else is, outside of any checkout,
it runs README's example and the demo.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Bytes that the wheel has at most.
LARGEST = 2_000_000


def check(wheel: Path) -> None:
    """Check a wheel's name, size and contents."""
    assert wheel.name.endswith("-py3-none-any.whl"), f"{wheel.name} is not pure Python"
    assert wheel.stat().st_size < LARGEST, f"{wheel.name} has {wheel.stat().st_size:,} bytes"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {path.relative_to(ROOT).as_posix() for folder in ("templates", "cl") for path in (ROOT / folder).rglob("*.*")}
    assert sources
    packed = {
        name.removeprefix("clsparse_py/") for name in names if name.startswith(("clsparse_py/cl/", "clsparse_py/templates/"))
    }
    assert packed == sources, f"the wheel lacks {sorted(sources - packed)}"
    packages = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "clsparse_py").rglob("__init__.py")}
    assert packages <= {name.rpartition("/")[0] for name in names}


def try_out(wheel: Path, folder: Path) -> None:
    """Install a wheel with PoCL into a new environment, and Intel's runtime if PoCL builds nothing for this processor."""
    venv.create(folder / "environment", with_pip=True)
    programs = folder / "environment" / "bin"
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*command: str, fails: bool = False) -> str:
        done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
        assert fails or done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
        return done.stdout if done.returncode == 0 else ""

    run(str(programs / "pip"), "install", "--quiet", f"{wheel}[pocl]")
    if not run(str(programs / "clsparse"), "devices", fails=True):
        run(str(programs / "pip"), "install", "--quiet", f"{wheel}[intel]")
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.DOTALL)
    assert example is not None
    print(run(str(programs / "python"), "-c", example[1]))
    print(run(str(programs / "clsparse"), "demo"))


def main() -> None:
    """Check the one wheel of a folder, and try it out."""
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    check(wheel)
    with tempfile.TemporaryDirectory() as folder:
        try_out(wheel, Path(folder))
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, installed and tried")


if __name__ == "__main__":
    main()
