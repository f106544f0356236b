"""The phases of products of sparse matrices and where their time goes, as Dalton et al. report them.

python -m bench.phases --suite paper-amg --suite paper-spgemm --out bench/results/NAME-spgemm-phases.json

For each product: the expansion factor of its rows (products to an entry of A) and their contraction factor (products to an entry
of C), as in their Table 9 and Figure 12; how many rows have how many products, as in Figure 5; the time of each phase by the
reference ESC, the optimised one and what is chosen, as in Table 10; and of the sort that the reference spends most of its time
with, over all bits and over those in use, as in Figure 8. Products of `paper-amg` are A P and P^T (A P), of other suites A^2. The
two of Table 9 are called `inner` and `outer`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse as sp
from pyopencl import array as cla

import clsparse_py as cs
from bench import gallery, opencl, scripts
from bench.opencl_calls import to_device
from bench.problems import spgemm
from bench.report import Sheet
from bench.summaries import as_text
from clsparse_py._ground.files import write_text
from clsparse_py.primitives import radix_sort

Operands = tuple[sp.csr_array, sp.csr_array]

# Methods of SpGEMM whose phases are measured.
METHODS = ("esc", "esc-local", "auto")
#: Limits of the classes of rows: rows of each class but the last have fewer products, see Figure 5.
CLASSES = (128, 1024)
_FACTORS = ("expansion", "contraction")
#: Most keys that are sorted.
_MOST_KEYS = 50_000_000
#: Shape of the matrix of Table 9.
_TALL = (1024**2, 1024)
#: Density of the matrix of Table 9, from its expansion and contraction.
_DENSITY = 1e-4


def products(suites: Sequence[str], *, cpu: bool) -> Iterator[tuple[str, Callable[[], Operands]]]:
    """Yield the names of products and what loads their operands."""
    for suite in suites:
        for name in gallery.suite(suite, cpu=cpu):
            if suite == "paper-amg":
                yield from (
                    (input_name, lambda input_name=input_name: spgemm.galerkin(input_name)) for input_name in spgemm.inputs(name)
                )
            else:
                yield gallery.title(name), lambda name=name: spgemm.square(name)
    yield "inner", lambda: _of_table_9()[::-1]
    yield "outer", _of_table_9


def _of_table_9() -> Operands:
    """Return the random matrix of Table 9 and its transpose."""
    tall = sp.csr_array(sp.random_array(_TALL, density=_DENSITY, rng=np.random.default_rng(9)))
    return tall, sp.csr_array(tall.T.tocsr())


def factors(A: sp.csr_array, B: sp.csr_array, entries: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return the factors of a product's rows, and how many of these have how many products.

    Parameters
    ----------
    entries
        Of each row of C.
    """
    lengths = np.diff(A.indptr)
    ones = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    of_rows = ones @ np.diff(B.indptr).astype(np.float64)
    results = {
        name: [float(statistic) for statistic in (ratios.min(), ratios.max(), ratios.mean(), ratios.std())]
        for name, ratios in (
            ("expansion", of_rows[lengths > 0] / lengths[lengths > 0]),
            ("contraction", of_rows[entries > 0] / entries[entries > 0]),
        )
        if ratios.size
    }
    rows = np.histogram(of_rows, [0, *CLASSES, np.inf])[0]
    return {**results, "rows": rows.tolist(), "products": int(of_rows.sum()), "entries": int(entries.sum())}


def _median_seconds(queue: cl.CommandQueue, action: Callable[[], object], rounds: int) -> float:
    action()
    seconds = []
    for _ in range(rounds):
        queue.finish()
        begin = time.perf_counter()
        action()
        queue.finish()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def phases(A: cs.csr_array, B: cs.csr_array, method: str, rounds: int) -> dict[str, float]:
    """Return the seconds of each phase of a product, kernels built: medians."""
    cs.spgemm(A, B, method=method)
    runs = [cs.spgemm(A, B, method=method, profile=True)[1] for _ in range(rounds)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def sorts(queue: cl.CommandQueue, n: int, shape: tuple[int, int], rounds: int) -> dict[str, float]:
    """Return the seconds that it takes to sort as many keys as there are products: over all bits, and over those in use."""
    rows, columns = (max(1, (size - 1).bit_length()) for size in shape)
    rng = np.random.default_rng(0)
    keys = cla.to_device(queue, rng.integers(0, 1 << rows + columns, min(n, _MOST_KEYS), np.uint64))
    out = cla.empty_like(keys)
    return {
        "keys": keys.size,
        "bits": rows + columns,
        "all": _median_seconds(queue, lambda: radix_sort(keys, out=out), rounds),
        "used": _median_seconds(queue, lambda: radix_sort(keys, bits=(0, rows + columns), out=out), rounds),
    }


def measure(queue: cl.CommandQueue, name: str, operands: Operands, rounds: int) -> dict[str, Any]:
    """Return all that there is to tell of a product."""
    left, right = (
        cs.csr_array(to_device(queue, (operand.data, operand.indices, operand.indptr)), shape=operand.shape, queue=queue)
        for operand in operands
    )
    entries = np.diff(cs.spgemm(left, right).indptr.get())
    results: dict[str, Any] = {"input": name, "shape": [operands[0].shape[0], operands[1].shape[1]], "seconds": {}}
    results |= factors(*operands, entries)
    for method in METHODS:
        try:
            results["seconds"][method] = phases(left, right, method, rounds)
        except MemoryError as error:
            results["seconds"][method] = {"refused": str(error)}
        cs.free_memory()
    return results | {"sort": sorts(queue, results["products"], results["shape"], rounds)}


def sheets(measurements: Sequence[dict[str, Any]]) -> Iterator[Sheet]:
    """Yield the tables."""
    four = ("least", "greatest", "mean", "deviation")
    of_factors = [f"{name}, {statistic}" for name in _FACTORS for statistic in four]
    of_rows = [f"rows under {CLASSES[0]} products", f"under {CLASSES[1]}", "more"]
    yield Sheet(
        "expansion and contraction factors of rows, and rows by their products",
        ("product", "products", "entries of C", *of_factors, *of_rows),
        tuple(
            (
                product["input"],
                *(f"{product[name]:,}" for name in ("products", "entries")),
                *(f"{value:.2f}" for name in _FACTORS for value in product[name]),
                *(f"{rows:,}" for rows in product["rows"]),
            )
            for product in measurements
        ),
    )
    names = ("analysis", "symbolic", "allocation", "numeric")
    yield Sheet(
        "milliseconds of each phase",
        ("product", *(f"{method}: {name}" for method in METHODS for name in (*names, "all"))),
        tuple(
            (product["input"], *(cell for method in METHODS for cell in _milliseconds(product["seconds"][method], names)))
            for product in measurements
        ),
    )
    yield Sheet(
        "sorting as many keys as there are products",
        ("product", "keys", "bits in use", "all bits, ms", "those in use, ms"),
        tuple(
            (
                product["input"],
                *(f"{product['sort'][of]:,}" for of in ("keys", "bits")),
                *(f"{1e3 * product['sort'][of]:.3f}" for of in ("all", "used")),
            )
            for product in measurements
        ),
    )


def _milliseconds(seconds: dict[str, Any], names: Sequence[str]) -> list[str]:
    if "refused" in seconds:
        return ["" for _ in (*names, "all")]
    return [f"{1e3 * seconds.get(name, 0.0):.3f}" for name in names] + [f"{1e3 * sum(seconds.values()):.3f}"]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the script's arguments."""
    whole = scripts.parser("phases", "Tell products' factors, and time their phases.")
    whole.add_argument("--exclude", nargs="+", default=[], metavar="PRODUCT", help="products to leave out")
    whole.add_argument("--rounds", type=int, default=5, help="of each median (5)")
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script, and return its exit code."""
    parsed = parser().parse_args(arguments)
    device = opencl.choose(parsed.device)
    context = cl.Context([device])  # kept: not every queue keeps its own
    queue = cl.CommandQueue(context)
    document: dict[str, Any] = {**scripts.provenance(device, parsed.commit), "products": []}
    for name, load in products(parsed.suite, cpu=opencl.is_cpu(device)):
        if name in parsed.exclude:
            continue
        document["products"].append(measure(queue, name, load(), parsed.rounds))
        print(json.dumps(document["products"][-1]), flush=True)
    write_text(parsed.out, as_text(document, 2) + "\n")
    tables = "\n".join(sheet.as_markdown() for sheet in sheets(document["products"]))
    write_text(parsed.out.with_suffix(".md"), tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
