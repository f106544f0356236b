"""A plugin of pytest's, for NetworkX's own tests: counts the calls that reach each function of the backend."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from clsparse_py._graph import networkx as networkx_backend

reached: Counter[str] = Counter()


def count(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        reached[name] += 1
        return function(*arguments, **named)

    return call


for _name in networkx_backend.get_info()["functions"]:
    setattr(networkx_backend, _name, count(_name, getattr(networkx_backend, _name)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, times in sorted(reached.items()):
        terminalreporter.write_line(f"reached {name} {times}")
