"""The package leaves objects of other packages alone: it counts no references, and changes neither class nor attributes.

Kernels are launched by one module.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import clsparse_py
from clsparse_py._memory.pool import Lent

#: Where an object of another's is given a class: PyOpenCL's buffers have no weak references, and no way to be made by a class of
#: ours on memory that there is; see `blocks.Lent`.
EXCEPTIONS = {"_memory/pool.py: buffer.__class__"}

_INSIDES = ("__class__", "__dict__")


def _assigned_names(tree: ast.AST) -> list[ast.AST]:
    """Return the names that statements assign to or delete."""
    return [node for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))]


def breaches(source: str) -> list[str]:
    """Return the places of a module that change the insides of an object other than ``self``, or count references."""
    tree, result = ast.parse(source), []
    for node in _assigned_names(tree):
        while isinstance(node, ast.Subscript):  # an entry of the attributes
            node = node.value
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and node.args:
                result.append(ast.unparse(node))
        if isinstance(node, ast.Attribute) and node.attr in _INSIDES and ast.unparse(node.value) != "self":
            result.append(ast.unparse(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            of = node.func.value if isinstance(node.func, ast.Attribute) else None
            changes = isinstance(node.func, ast.Attribute) and node.func.attr in ("update", "setdefault", "pop", "clear")
            if changes and isinstance(of, ast.Attribute) and of.attr == "__dict__" and ast.unparse(of.value) != "self":
                result.append(ast.unparse(node.func))
            names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            if "setattr" in ast.unparse(node.func) and any(name in names for name in _INSIDES):
                result.append(ast.unparse(node))
        if isinstance(node, (ast.Attribute, ast.Name)) and "getrefcount" in ast.unparse(node):
            result.append(ast.unparse(node))
    return result


def names(source: str) -> set[str]:
    """Return the names that a module uses, imports and spells out, whole."""
    result: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        result.update(value for value in vars(node).values() if isinstance(value, str))
    return result


def test_no_module_changes_the_insides_of_what_others_made() -> None:
    package = Path(clsparse_py.__file__).parent
    results = {
        f"{path.relative_to(package).as_posix()}: {breach}"
        for path in sorted(package.rglob("*.py"))
        for breach in breaches(path.read_text(encoding="utf-8"))
    }
    assert results == EXCEPTIONS


def test_the_exception_has_no_slots() -> None:
    """An object takes another class only if its memory has the same layout."""
    assert Lent.__slots__ == ()


@pytest.mark.parametrize(
    "source",
    [
        "sys.getrefcount(x)",
        "from sys import getrefcount\ngetrefcount(x)",
        "x.__class__ = Y",
        "x.__dict__ = own = {}",
        "x.__dict__['a'] = 1",
        "x.y.__dict__['a'][0] += 1",
        "vars(x)['a'] = 1",
        "del x.__dict__['a']",
        "x.__dict__.update(a=1)",
        "object.__setattr__(x, '__class__', Y)",
        "setattr(x, '__dict__', {})",
        "for x.__class__ in y: pass",
    ],
)
def test_breaches_are_seen(source: str) -> None:
    assert breaches(source)


@pytest.mark.parametrize(
    "source", ["self.__class__ = Y", "x.__class__ is Y", "kept = x.__dict__", "x.y = 1", "vars(x)", "x['a'] = 1"]
)
def test_what_is_no_breach_passes(source: str) -> None:
    assert not breaches(source)


def test_one_module_launches() -> None:
    package = Path(clsparse_py.__file__).parent
    results = {
        path.name for path in package.rglob("*.py") if "enqueue_nd_range_kernel" in names(path.read_text(encoding="utf-8"))
    }
    assert results == {"built.py"}
    assert "enqueue_nd_range_kernel" in names("from pyopencl import enqueue_nd_range_kernel as enqueue")
