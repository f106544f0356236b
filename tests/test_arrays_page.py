"""docs/arrays.md: its table of host reads is what operations do, and the functions it lists are there."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from pages import DOCS, rows
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py._device.device import describe

pytestmark = pytest.mark.any_platform

PAGE = (DOCS / "arrays.md").read_text("utf-8")


def promised_reads() -> list[tuple[str, int]]:
    """Return the expressions of the table of host reads, each with its reads."""
    table = PAGE.partition("## Host reads")[2].partition("\n## ")[0]
    numbers = ((cells, int(number)) for cells, number, *_ in rows(table) if number.isdigit())
    return [(expression, number) for cells, number in numbers for expression in re.findall(r"`([^`]+)`", cells)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the copies from the device to the host, and the mappings."""
    n, copy, mapping = [0], cl.enqueue_copy, cl.enqueue_map_buffer

    def copied(queue: cl.CommandQueue, to: Any, source: Any, **named: Any) -> Any:
        n[0] += isinstance(to, np.ndarray)
        return copy(queue, to, source, **named)

    def mapped(*arguments: Any, **named: Any) -> Any:
        n[0] += 1
        return mapping(*arguments, **named)

    monkeypatch.setattr(cl, "enqueue_copy", copied)
    monkeypatch.setattr(cl, "enqueue_map_buffer", mapped)

    def since() -> int:
        result, n[0] = n[0], 0
        return result

    return since


@pytest.fixture
def names(queue: cl.CommandQueue) -> Iterator[dict[str, Any]]:
    """The operands of the page's expressions: canonical arrays of 60 x 60 whose structure is known."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    rng = np.random.default_rng(0)
    A, B = (clsparse_py.random_array((60, 60), density=0.1, format="csr", rng=rng, queue=queue) for _ in range(2))
    assert A.has_canonical_format
    assert B.has_canonical_format
    x = cl_array.to_device(queue, np.ones(60))
    X = cl_array.to_device(queue, np.ones((60, 3)))
    places = np.array([5, 1, 40])
    out = cl_array.zeros(queue, 60, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of_places = {
            "rows": places,
            "cols": places,
            "mask": np.arange(60) % 2 == 0,
            "on_device": cl_array.to_device(queue, places),
            "marks": cl_array.to_device(queue, np.arange(60) % 2 == 0),
        }
        yield {"A": A, "B": B, "x": x, "X": X, "out": out, "sp": clsparse_py, **of_places}


def test_operations_read_as_often_as_the_page_says(
    queue: cl.CommandQueue, names: dict[str, Any], reads: Callable[[], int]
) -> None:
    assert len(promised_reads()) > 25
    in_loops = describe(queue.device).lanes_are_loops
    wrong = []
    for expression, number in promised_reads():
        eval(expression, names)  # so that plans are there, and what is kept
        reads()
        eval(expression, names)
        result = reads()
        if result > number or (in_loops and result != number):
            wrong.append(f"{expression}: the page says {number}, it reads {result} times")
    assert not wrong, "\n".join(wrong)
