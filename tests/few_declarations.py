"""Kernels that PoCL builds in tests with declarations of those built-ins alone that they name.

It reads a megabyte of declarations with each kernel, which takes two thirds of the time to build one. They are those of its own
header, left out by macros that the header looks at.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyopencl as cl

from clsparse_py._build import programs
from clsparse_py._build.programs import Parameters

__all__ = ["READ", "Declarations", "header_of", "install"]

#: The macro that says that all declarations were read, and the option that says so from the beginning.
READ = "_OPENCL_H_"
_CONDITIONS = ("#if", "#ifdef", "#ifndef")


class Declarations:
    """The header of built-ins, by what is declared.

    Parameters
    ----------
    header : Path
        ``opencl-c.h``. Its neighbour ``opencl-c-base.h`` has the types and constants.
    """

    def __init__(self, header: Path) -> None:
        # Directives, which are kept, and declarations, with the name of the function.
        self._parts: list[tuple[str, str]] = []
        text = re.sub(r"\\\n", " ", header.read_text())
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).replace(READ, f"{READ}OF_TESTS")
        text = text.replace('"opencl-c-base.h"', f'"{header.parent}/opencl-c-base.h"')
        for directive, declaration in re.findall(r"^[ \t]*(#[^\n]*)|([^#;]+;)", text, flags=re.MULTILINE):
            called = re.search(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", declaration))
            self._parts.append((called[1] if called else "", " ".join((directive or declaration).split())))
        self._names = frozenset(name for name, _ in self._parts)

    @functools.lru_cache(maxsize=1024)  # noqa: B019 - there is one for each header
    def of(self, words: frozenset[str]) -> str:
        """Return the declarations of the functions among some words; conditions with nothing in them are left out."""
        kept: list[str] = []
        for name, text in self._parts:
            if text.startswith("#endif") and kept and kept[-1].split()[0] in _CONDITIONS:
                kept.pop()
            elif not name or name in words:
                kept.append(text)
        return "\n".join(kept)

    def before(self, source: str) -> str:
        """Return a source behind the declarations of the built-ins that it names."""
        words = self._names.intersection(re.findall(r"[a-z]\w+", source))
        return f"{self.of(words)}\n{source}"


@functools.cache
def _declarations(header: Path) -> Declarations:
    return Declarations(header)


def header_of(device: cl.Device) -> Path | None:
    """Return the header of built-ins that a device's compiler reads: that of PyPI's or Debian's PoCL, None of others."""
    if "Portable" not in device.platform.name:
        return None
    folder = Path("/usr")
    if "debian" not in device.driver_version:
        spec = importlib.util.find_spec("pocl_binary_distribution")
        folder = Path(spec.origin or "").parent / ".libs" if spec else Path()
    header = folder / "share/pocl/include/opencl-c.h"
    return header if header.exists() else None


def install() -> None:
    """Make this process build such kernels so from now on."""
    build, result = programs._build_kernel, functools.cache(header_of)

    def kernel(context: cl.Context, device: cl.Device, parameters: Parameters, source: str) -> tuple[cl.Program, cl.Kernel]:
        header = result(device)
        if header is None:
            return build(context, device, parameters, source)
        told: Any = SimpleNamespace(name=parameters.name, options=(*parameters.options, f"-D{READ}"))
        return build(context, device, told, _declarations(header).before(source))

    programs._build_kernel = kernel
