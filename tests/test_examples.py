"""Examples of docstrings: each public name has some, and they do what they say."""

from __future__ import annotations

import doctest
import functools
import inspect
from typing import Any

import pytest

import clsparse_py
from clsparse_py import amg, csgraph, distributed, graph, io, linalg, primitives
from clsparse_py._device.device import describe

#: Modules with public names.
MODULES = (clsparse_py, amg, csgraph, distributed, graph, io, linalg, primitives)


@functools.cache
def collect_docstrings() -> dict[str, str]:
    """Return the docstring of every public name that is of this package; of an instance that of its class."""
    results: dict[str, str] = {}
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value):
                continue
            told = value if hasattr(value, "__name__") else type(value)
            # The functions of `csgraph` are SciPy's, whose examples its pages have; the module's docstring has ours.
            if told.__module__.startswith("clsparse_py") and module is not csgraph:
                results[f"{module.__name__}.{name}"] = inspect.getdoc(told) or ""
    return results | {module.__name__: inspect.getdoc(module) or "" for module in (amg, csgraph, io, linalg)}


def test_every_public_name_has_an_example() -> None:
    assert len(collect_docstrings()) > 60
    assert [name for name, text in collect_docstrings().items() if ">>>" not in text] == []


@pytest.mark.parametrize("name", sorted(collect_docstrings()))
def test_examples(name: str) -> None:
    if not describe(clsparse_py.default_queue().device).fp64:
        pytest.skip("examples have values of double precision")
    if name == "clsparse_py.distributed.by_graph":
        pytest.importorskip("pymetis")
    assert_right(collect_docstrings()[name], name)


def test_examples_of_methods() -> None:
    if not describe(clsparse_py.default_queue().device).fp64:
        pytest.skip("examples have values of double precision")
    for cls in (clsparse_py.csr_array, clsparse_py.csc_array, clsparse_py.coo_array):
        for name in dir(cls):
            member = inspect.getattr_static(cls, name)
            text = inspect.getdoc(member) if not name.startswith("__") else None
            if text and ">>>" in text:
                assert_right(text, f"{cls.__name__}.{name}")


def assert_right(text: str, name: str) -> None:
    """Run the examples of a docstring."""
    names: dict[str, Any] = {}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, verbose=False)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
