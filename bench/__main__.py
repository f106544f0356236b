"""The command line: ``python -m bench run``, ``wall``, ``compare``, ``report``, ``pages``, ``gallery`` and ``check-profiles``."""

from __future__ import annotations

import argparse
import copy
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyopencl as cl
from rich.console import Console
from rich.table import Table

from bench import (
    compare,
    first_product,
    gallery,
    machine,
    opencl,
    ours,
    pages,
    peers,
    problems,
    report,
    results,
    runner,
    scripts,
    summaries,
    times,
    verdicts,
    wall,
)
from bench.contestants import Contestant
from bench.problems import Task
from bench.results import Document
from clsparse_py._decisions import profiles
from clsparse_py._ground.console import make_console
from clsparse_py._ground.files import write_text

# Width of the widest table in columns, where no terminal says how wide it may be.
WIDTH = 170
# Help of the option for a file of samples.
_SAMPLES = "a file for all samples besides, as JSON"
# Help of the option for a time limit.
_BUDGET = f"for all problems: rounds beyond {times.FEWEST_ROUNDS} of a problem are left out, problems never"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    options = _parser().parse_args(arguments)
    console = make_console()
    if not console.is_terminal:
        # Into a file or a pipe the tables go unfolded.
        console = make_console(width=WIDTH)
    try:
        status: int = options.command(options, console)
    except (OSError, ValueError, results.CannotContinueError, subprocess.CalledProcessError) as error:
        console.print(f"error: {error}", style="red", soft_wrap=True)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")

    run = commands.add_parser("run", help="measure, and write or continue a results file")
    run.set_defaults(command=_run)
    _add_output(run)
    run.add_argument("--samples", type=Path, metavar="FILE", help=f"{_SAMPLES}; an unfinished one is continued")
    _add_selection(run)
    known = ", ".join((*problems.GROUPS, *problems.OPERATIONS))
    run.add_argument("--ops", type=_list, default=["spmv"], help=f"of {known} (default: spmv)")
    dtypes = ", ".join(problems.DTYPES)
    run.add_argument("--dtypes", type=_list, default=["float64"], help=f"of matrices: of {dtypes} (default: float64)")
    run.add_argument(
        "--variants",
        type=_list,
        default=["plain", "auto"],
        help="of our SpMV: plain, auto, scheme or scheme:kernel, then :parameter=number; commas between, '' for none "
        "(default: plain,auto)",
    )
    run.add_argument(
        "--methods", type=_list, help=f"of our SpTRANS and SpGEMM: of {', '.join(_methods())} (default: see README.md)"
    )
    run.add_argument("--rounds", type=int, default=9, help="samples of each contestant on each matrix (default: 9)")
    run.add_argument("--budget", type=float, metavar="SECONDS", help=_BUDGET)
    run.add_argument("--skip-first-product", action="store_true", help="do not time new processes")

    whole = commands.add_parser("wall", help="measure main operations on all kinds of matrices, in pieces that continue a file")
    whole.set_defaults(
        command=_wall, variants=[ours.spmv.PLAIN], methods=[ours.spgemm.PLAIN], samples=None, skip_first_product=True
    )
    _add_output(whole)
    _add_selection(whole)
    whole.add_argument("--rounds", type=int, default=7, help="samples of each contestant on each matrix (default: 7)")
    whole.add_argument(
        "--budget", type=float, metavar="SECONDS", help="of this piece: what might not end in it is left for later"
    )

    between = commands.add_parser("compare", help="tell what became slower or faster from one commit to another")
    between.set_defaults(command=_compare)
    between.add_argument("old", type=Path, metavar="OLD", help="a file of run --samples, or a source folder with clsparse_py")
    between.add_argument("new", type=Path, metavar="NEW", help="the same kind of thing")
    between.add_argument("--check", action="store_true", help="exit with 1 if something is slower or fails in NEW")
    between.add_argument("--contestant", metavar="NAME", help="of files of samples: who is compared (default: ours)")
    of_folders = between.add_argument_group("source folders")
    _add_selection(of_folders)
    listed = ", ".join(compare.OPERATIONS)
    of_folders.add_argument("--ops", type=_list, help=f"of {listed} (default: {', '.join(compare.DEFAULT)})")
    of_folders.add_argument("--dtypes", type=_list, default=["float64"], help=f"of {dtypes} (default: float64)")
    of_folders.add_argument("--device", default="", metavar="SUBSTRING", help="of the device's or platform's name")
    of_folders.add_argument("--rounds", type=int, default=9, help="samples of each process on each problem (default: 9)")
    of_folders.add_argument("--budget", type=float, metavar="SECONDS", help=_BUDGET)
    of_folders.add_argument("--out", type=Path, help="a file for ratios, verdicts and summaries of samples, as JSON")
    of_folders.add_argument("--samples", type=Path, metavar="FILE", help=_SAMPLES)

    show = commands.add_parser("report", help="print tables; write them and plots beside the results file")
    show.set_defaults(command=_report)
    show.add_argument("results", type=Path)
    ways = ("back_to_back", "single", "busy")
    show.add_argument("--time", choices=ways, default="back_to_back", help="the way of timing to compare by")

    fill = commands.add_parser("pages", help="make the tables of pages anew from the results files that they name")
    fill.set_defaults(command=_pages)
    fill.add_argument("pages", type=Path, nargs="+", metavar="PAGE")

    build = commands.add_parser("gallery", help="build matrices, keep those that take long, print their statistics")
    build.set_defaults(command=_gallery)
    build.add_argument("--device", default="", metavar="SUBSTRING", help="of the device that a suite is for")
    build.add_argument("--list", action="store_true", help="build nothing: tell where each comes from, and its file's size")
    _add_selection(build)

    check = commands.add_parser("check-profiles", help="exit with 1 if a shipped profile was made for older kernels")
    check.set_defaults(command=_check_profiles)
    return parser


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="the results file, a summary; an unfinished one is continued")
    parser.add_argument("--fresh", action="store_true", help="start the results file anew")
    parser.add_argument(
        "--peers",
        type=_list,
        help=f"of {', '.join(peers.NAMES)}; '' for none (default: all found; of the wall: those of the device)",
    )
    parser.add_argument("--device", default="", metavar="SUBSTRING", help="of the device's or platform's name")
    parser.add_argument("--commit", metavar="REVISION", help="what is measured, where the tree has no repository")


def _add_selection(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--suite", choices=gallery.SUITES)
    parser.add_argument("--matrices", nargs="+", default=[], metavar="NAME_OR_FILE", help="names, files, or folders of files")
    parser.add_argument("--exclude", nargs="+", default=[], metavar="NAME", help="matrices of the suite to leave out")


def _methods() -> list[str]:
    return list(dict.fromkeys(method for methods in ours.METHODS.values() for method in methods))


def _list(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _select(options: argparse.Namespace, *, cpu: bool) -> list[str]:
    names = gallery.suite(options.suite, cpu=cpu) if options.suite else []
    names += [name for given in options.matrices for name in gallery.expand(given)]
    if not names:
        raise ValueError("no matrices: name a --suite or --matrices")
    return [name for name in dict.fromkeys(names) if gallery.title(name) not in options.exclude]


def _run(options: argparse.Namespace, console: Console) -> int:
    operations = problems.expand(options.ops)
    if unknown := [method for method in options.methods or () if method not in _methods()]:
        raise ValueError(f"--methods: got {', '.join(unknown)}, needs some of {', '.join(_methods())}")
    device = opencl.choose(options.device)
    tasks = _tasks(options, operations, cpu=opencl.is_cpu(device))
    return _measure(options, console, device, tasks)


def _wall(options: argparse.Namespace, console: Console) -> int:
    start = time.monotonic()
    device = opencl.choose(options.device)
    cpu = opencl.is_cpu(device)
    if not options.matrices:
        options.suite = options.suite or "wall"
    if options.peers is None:
        options.peers = wall.CPU_PEERS if cpu else wall.GPU_PEERS
    tasks = wall.tasks(_select(options, cpu=cpu))
    status = _measure(options, console, device, tasks, in_pieces=True, takes_part=wall.takes_part, start=start)
    if options.out.exists():
        console.print(wall.means_sheet(results.read(options.out)).as_rich())
    return status


def _measure(
    options: argparse.Namespace,
    console: Console,
    device: cl.Device,
    tasks: list[Task],
    *,
    in_pieces: bool = False,
    takes_part: Callable[[str], bool] = lambda _: True,
    start: float | None = None,
) -> int:
    """Measure tasks into the files of the options, and return the exit status.

    Parameters
    ----------
    in_pieces
        As `runner.run` takes it.
    takes_part
        Whether a contestant is let in, by its name.
    start
        When the budget began, by the clock of `time.monotonic`; None if it begins with the first problem.
    """
    # Named, and so kept: quirk 9.
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    cpu = opencl.is_cpu(device)
    operations = list(dict.fromkeys(operation for _, operation, _ in tasks))
    document, result = _new_document(options, device)

    def contestants(operation: str) -> list[Contestant]:
        of_peers = [contestant for name in result for contestant in peers.load(name).contestants(operation, queue)]
        own = ours.contestants(operation, queue, variants=options.variants, methods=options.methods)
        return [contestant for contestant in own + of_peers if takes_part(contestant.name)]

    for operation in operations:
        # Names what it does not know before anything is measured.
        contestants(operation)
    outputs = [_output(options.out, document, samples=False, fresh=options.fresh)]
    if options.samples is not None:
        outputs.append(_output(options.samples, document, samples=True, fresh=options.fresh))

    copies = opencl.large_copies(queue)
    bandwidth = max(copy.bandwidth for copy in copies)
    if "cusparse" in result:
        copies.append(peers.load("cusparse").large_copy())
    for output in outputs:
        output.document["copies"] += [copy.as_json() for copy in copies]
    if "spmv" in operations and options.variants and not options.skip_first_product:
        seconds = first_product.in_new_processes(options.device)
        for output in outputs:
            output.document["first_product"] = seconds

    for name, reason in document["unavailable"].items():
        console.print(f"without {name}: {reason}")
    console.print(f"{device.name.strip()}, copy {bandwidth / 1e9:.1f} GB/s, {len(tasks)} problems")
    budget = options.budget
    if start is not None and budget is not None:
        budget -= time.monotonic() - start
    failures = runner.run(
        outputs,
        tasks=tasks,
        contestants=contestants,
        bandwidth=bandwidth,
        resident_copy=(lambda size: opencl.copy_of_size(queue, size)) if cpu and not in_pieces else None,
        rounds=options.rounds,
        budget=budget,
        in_pieces=in_pieces,
        console=console,
    )
    return 1 if failures else 0


def _output(path: Path, new: Document, *, samples: bool, fresh: bool) -> results.Output:
    """Return a file that a run adds entries to: continued, or begun anew."""
    document = copy.deepcopy(new) if fresh else results.load_or_start(path, new, samples=samples)
    return results.Output(path, document, samples)


def _tasks(options: argparse.Namespace, operations: list[str], *, cpu: bool) -> list[Task]:
    if not options.suite and not all(map(problems.needs_matrices, operations)):
        raise ValueError("no inputs: the primitives need a --suite")
    matrices = _select(options, cpu=cpu) if any(map(problems.needs_matrices, operations)) else []
    tasks = problems.tasks(operations, matrices, options.dtypes, options.suite, cpu=cpu)
    return [task for task in tasks if task[0] not in options.exclude]


def _new_document(options: argparse.Namespace, device: cl.Device) -> tuple[Document, list[str]]:
    """Return a document without entries, and the peers that can run."""
    reasons = {name: peers.load(name).available() for name in (peers.NAMES if options.peers is None else options.peers)}
    outcomes = [name for name, reason in reasons.items() if reason is None]
    versions = machine.versions()
    for name in outcomes:
        versions |= peers.load(name).versions()
    document: Document = {
        "schema": results.VERSION,
        "machine": {"device": opencl.describe(device), "host": machine.host()},
        "versions": versions,
        "commit": machine.commit(options.commit),
        "date": runner.now(),
        "copies": [],
        "first_product": [],
        "unavailable": {name: reason for name, reason in reasons.items() if reason is not None},
        "entries": [],
    }
    return document, outcomes


def _compare(options: argparse.Namespace, console: Console) -> int:
    if options.rounds < 1:
        raise ValueError(f"--rounds: got {options.rounds}, needs at least 1")
    if all(path.is_dir() for path in (options.old, options.new)):
        result = _of_folders(options, console)
    elif all(path.is_file() for path in (options.old, options.new)):
        result = compare.of_files(results.read(options.old), results.read(options.new), options.contestant)
    else:
        raise ValueError(f"compare: needs two files of samples or two source folders, got {options.old} and {options.new}")
    judged = verdicts.judge(result)
    for sheet in compare.sheets(judged):
        console.print(sheet.as_rich())
    return 1 if options.check and any(judgement.verdict in ("slower", "failed") for judgement in judged) else 0


def _of_folders(options: argparse.Namespace, console: Console) -> list[verdicts.Pair]:
    device = opencl.choose(options.device)
    if not options.suite and not options.matrices:
        options.suite = "quick"
    names = _select(options, cpu=opencl.is_cpu(device))
    tasks = compare.tasks(names, options.ops or compare.DEFAULT, options.dtypes)
    console.print(f"{device.name.strip()} ({device.platform.name.strip()}), {len(tasks)} problems")
    result = compare.of_folders(
        options.old.resolve(), options.new.resolve(), tasks, device, rounds=options.rounds, budget=options.budget, console=console
    )
    sides = {"old": options.old.resolve().name, "new": options.new.resolve().name}
    for path, results_of in ((options.out, compare.summary), (options.samples, compare.samples)):
        if path is not None:
            document = {**sides, **scripts.provenance(device, None), **results_of(verdicts.judge(result))}
            write_text(path, summaries.as_text(document) + "\n")
    return result


def _report(options: argparse.Namespace, console: Console) -> int:
    for path in report.report(results.read(options.results), options.results, console, way=options.time):
        console.print(f"wrote {path}")
    return 0


def _pages(options: argparse.Namespace, console: Console) -> int:
    for page in options.pages:
        if pages.fill(page):
            console.print(f"wrote {page}")
    return 0


def _gallery(options: argparse.Namespace, console: Console) -> int:
    if options.list:
        return _list_gallery(options, console)
    table = Table("matrix", *("rows", "columns", "nnz", "shortest", "mean", "longest", "empty"))
    for name in _select(options, cpu=opencl.is_cpu(opencl.choose(options.device))):
        matrix = gallery.load(name)
        lengths = np.diff(matrix.indptr)
        counts = (*matrix.shape, matrix.nnz, lengths.min(), round(lengths.mean(), 2), lengths.max(), (lengths == 0).sum())
        table.add_row(gallery.title(name), *(f"{count:,}" for count in counts))
    console.print(table)
    return 0


def _check_profiles(_options: argparse.Namespace, console: Console) -> int:
    shipped = [profiles.read(path, shipped=True) for path in profiles.list_shipped()]
    older = [sentence for profile in shipped for sentence in profiles.describe_older([profile])]
    for sentence in older:
        console.print(sentence, soft_wrap=True)
    return 1 if older else 0


def _list_gallery(options: argparse.Namespace, console: Console) -> int:
    table = Table("matrix", "from", "bytes of its file")
    sources = {name: gallery.source(name) for name in _select(options, cpu=opencl.is_cpu(opencl.choose(options.device)))}
    for name, (where, size) in sources.items():
        table.add_row(gallery.title(name), where, f"{size:,}" if size else "")
    console.print(table)
    of_files = [size for _, size in sources.values() if size]
    console.print(f"{len(sources)} matrices, {len(of_files)} of them from files of {sum(of_files):,} bytes together")
    return 0


if __name__ == "__main__":
    sys.exit(main())
