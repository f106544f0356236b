"""``python -m tests.programs.mutants``: plants faults in copies of the package, and says how many programs find them.

A fault replaces a text of a source file. The status is 1 where the text does not occur exactly once, where programs do not find
the fault, or where they fail without it, too. Whoever moves the code moves the fault.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MUTANTS", "Mutant", "MutantError", "plant"]

ROOT = Path(__file__).parents[2]
#: What a copy has of the checkout.
_FOLDERS = ("clsparse_py", "templates", "cl", "tests")


class MutantError(Exception):
    """A fault cannot be planted, or is not found."""


@dataclass(frozen=True)
class Mutant:
    """A fault: a file, a text in it, and the text that replaces it.

    Attributes
    ----------
    name : str
    file : str
        Relative to the checkout's root.
    right, wrong : str
        The text, which occurs once, and its replacement.
    """

    name: str
    file: str
    right: str
    wrong: str

    def text(self) -> str:
        """Return the file's text with the fault."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        if text.count(self.right) != 1:
            raise MutantError(f"{self.file} has the text {text.count(self.right)} times: {self.right!r}")
        return text.replace(self.right, self.wrong)


MUTANTS = (
    # Faults that there were once.
    Mutant(
        "values of a converted copy with the original's indices",
        "clsparse_py/_solvers/linalg/triangular_plan.py",
        'convert(queue, "A", rows.data, dtype)',
        "rows.astype(dtype).data",
    ),
    Mutant(
        "launches of chains on queues without order",
        "clsparse_py/_run/launch.py",
        "if self._beside is None:\n            event = built.enqueue(",
        "if True:\n            event = built.enqueue(",
    ),
    Mutant(
        "passes over vectors on queues without order",
        "clsparse_py/_memory/memory.py",
        "if beside is not None:",
        "if beside is not beside:",
    ),
    Mutant(
        "sum(dtype, out) in out's dtype",
        "clsparse_py/_operations/reductions/sums.py",
        "inner if dtype is None else np.dtype(dtype)",
        "inner if dtype is None or self._out is not None else np.dtype(dtype)",
    ),
    Mutant(
        "memory of the host that goes before another queue's commands have ended",
        "clsparse_py/_run/transfer.py",
        "list(self.uses.get(self.pointer, {}).values())",
        "()",
    ),
    Mutant(
        "products of integers that are 0, as C has them",
        "clsparse_py/_operations/elementwise/operators.py",
        'integer=_wrap_around("*")',
        'integer="a * b"',
    ),
    Mutant(
        "b of minres as it is",
        "clsparse_py/_solvers/krylov/minres.py",
        "    system.scaling.scale_b()\n",
        "",
    ),
    Mutant(
        "-0.0 of A - D", "clsparse_py/_operations/elementwise/methods.py", 'else "from_zero", dtype)', 'else "negative", dtype)'
    ),
    Mutant(
        "identity of extremes in the dtype of sums",
        "clsparse_py/_primitives/addition.py",
        "extreme_of_none(self.operation, np.dtype(self.target))",
        "extreme_of_none(self.operation, total)",
    ),
    Mutant(
        "systems that are not scaled",
        "clsparse_py/_solvers/krylov/scaling.py",
        "power.exponent = exponent = 0 if abs(exponent) <= self.near else exponent",
        "power.exponent = exponent = 0",
    ),
    Mutant(
        "int64 beside 2^63 in float64",
        "clsparse_py/_operations/elementwise/comparison.py",
        "    if isinstance(scalar, (int, np.integer)) and",
        "    scalar = np.float64(scalar) if isinstance(scalar, int) and scalar >= 2**63 else scalar\n"
        "    if isinstance(scalar, (int, np.integer)) and",
    ),
    # One of each kind of operation.
    Mutant("SpMV: a cut row's last entry", "templates/spmv/chunked.mako", "= PIECE_SUM(k, end);", "= PIECE_SUM(k, end - 1);"),
    Mutant(
        "SpGEMM by heads: the last one",
        "templates/spgemm/merge_item.mako",
        "        T sum = ZERO;\n% for u in heads:",
        "        T sum = ZERO;\n% for u in heads[:-1] or heads:",
    ),
    Mutant(
        "SpGEMM by hashing: two columns in a slot",
        "templates/spgemm/hash.mako",
        "if (occupant == NO_COLUMN || occupant == column)",
        "if (occupant == NO_COLUMN || occupant == column || slot == last)",
    ),
    Mutant(
        "SpTRANS: one value of duplicates",
        "templates/transpose/bucket_finish.mako",
        "out[to] = values[k];",
        "out[to] = values[k > begin && words[k - 1] == word ? k - 1 : k];",
    ),
    Mutant(
        "SpMM: a cut row's last columns",
        "templates/spmm/parts.mako",
        "if (column_${c} < n_columns) \\\n                STORE_YV(partial",
        "if (column_${c} + ${width} < n_columns) \\\n                STORE_YV(partial",
    ),
    Mutant(
        "masks: the last column of a span",
        "templates/spgemm/masked_chunked.mako",
        "b_end = first_from(b_indices, b, b_end, high + 1);",
        "b_end = first_from(b_indices, b, b_end, high);",
    ),
    Mutant(
        "A + B: rows that meet in one column",
        "templates/elementwise/union.mako",
        "a_indices[a] <= b_indices[b_end - 1]",
        "a_indices[a] < b_indices[b_end - 1]",
    ),
    Mutant(
        "A[rows]: a row's last entry, cut off",
        "templates/indexing/rows_chunked.mako",
        "(entry < starts[row_begin] ? 1 : 0)",
        "(entry + 1 < starts[row_begin] ? 1 : 0)",
    ),
    Mutant(
        "a scan without the first chunk's sum",
        "templates/primitives/scan_chunks.mako",
        "for (ulong earlier = 0; earlier",
        "for (ulong earlier = 1; earlier",
    ),
    Mutant(
        "a plan's first values instead of new ones",
        "clsparse_py/_operations/spgemm/plan.py",
        'self._a.accept("a_data", a_data, self._product.a_data)',
        'self._a.accept("a_data", None, self._product.a_data)',
    ),
    Mutant(
        "another queue's event that is not waited for",
        "clsparse_py/_run/dense_product.py",
        "chain = Chain(queue, *operands[:2], *recording.kept, writes=operands[2:])",
        "chain = Chain(queue, writes=operands[2:])",
    ),
    Mutant(
        "a kernel that no compiler takes, so that a plain one does its work",
        "templates/elementwise/union_at_once.mako",
        "result_bits_of[${work_group}], before_of",
        "results_of[${work_group}], before_of",
    ),
    Mutant(
        "new values of a triangular plan, in the order of the transposed",
        "clsparse_py/_solvers/linalg/triangular_plan.py",
        "if not self._is_direct:",
        "if False:",
    ),
    Mutant(
        "columns of right-hand sides that a work-item solves together",
        "templates/triangular/solve.mako",
        "first_column + get_global_id(0) * ${width}",
        "first_column + get_global_id(0)",
    ),
)


def plant(mutant: Mutant, folder: Path) -> None:
    """Copy the package and its tests into a folder, with a fault."""
    text = mutant.text()
    for directory in _FOLDERS:
        shutil.copytree(ROOT / directory, folder / directory, ignore=shutil.ignore_patterns("*.pyc"))
    (folder / mutant.file).write_text(text, encoding="utf-8")


def _programs(folder: Path, *arguments: str) -> str:
    """Run programs against the package in a folder; return what they print."""
    path = os.pathsep.join((str(folder), *filter(None, [os.environ.get("PYTHONPATH")])))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", "tests.programs", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if "programs of" not in done.stdout:
        raise MutantError(done.stderr.strip()[-500:])
    return done.stdout


def find_fault(mutant: Mutant, options: argparse.Namespace) -> str:
    """Return a line on where a fault was found; raise a MutantError if it was not."""
    begin, common = time.monotonic(), ("--seed", str(options.seed), "--shrink", "0", "--block", "40", *options.programs_options)
    with tempfile.TemporaryDirectory() as folder:
        plant(mutant, Path(folder))
        printed = _programs(
            Path(folder), "--programs", str(options.programs), "--minutes", str(options.minutes), "--stop", *common
        )
    seconds = time.monotonic() - begin
    counts = [(name, int(n)) for name, n in re.findall(r"^(.+): (\d+) programs of", printed, re.MULTILINE)]
    n = sum(count for _, count in counts)
    result = re.search(r"^--- found in seed \d+, block (\d+), program (\d+)(?: on (.+))?$\n# (.*)", printed, re.MULTILINE)
    if result is None:
        raise MutantError(f"is not found by {n} programs in {seconds:.0f} s")
    block, program, device, kind = result.groups()
    alone = ("--device", device, "--only", block, "--one", program, *common)
    if "--- found" in _programs(ROOT, *alone):
        raise MutantError(f"programs fail without it: {' '.join(alone)}")
    return f"{n} programs, {seconds:.0f} s, {device}: {kind[:70]}"


def main() -> int:
    """Look for the faults whose names have a word of the command line in them; return the status."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of faults; all by default")
    parser.add_argument("--programs", type=int, default=5000, help="how many find a fault, at most")
    parser.add_argument("--minutes", type=float, default=15, help="how long to look for a fault, at most")
    parser.add_argument("--jobs", type=int, default=2, help="how many are looked for at once")
    parser.add_argument("--seed", type=int, default=1, help="of the programs")
    options, options.programs_options = parser.parse_known_args()
    chosen = [mutant for mutant in MUTANTS if not options.names or any(part in mutant.name for part in options.names)]
    for candidate in MUTANTS:
        candidate.text()

    def line(mutant: Mutant) -> bool:
        try:
            print(f"found: {mutant.name}: {find_fault(mutant, options)}", flush=True)
        except MutantError as error:
            print(f"NOT FOUND: {mutant.name}: {error}", flush=True)
            return False
        return True

    with ThreadPoolExecutor(options.jobs) as pool:
        return int(not all(list(pool.map(line, chosen))))


if __name__ == "__main__":
    sys.exit(main())
