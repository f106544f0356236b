"""The ``clsparse`` command."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyopencl as cl
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.text import Text

import clsparse_py
from clsparse_py._arrays.matrix_files import read_matrix, suffix_of, write_matrix
from clsparse_py._build import programs, refusals
from clsparse_py._command import demo
from clsparse_py._command.catalogue import catalogue
from clsparse_py._decisions import profiles
from clsparse_py._device import runtimes
from clsparse_py._device.device import Device, choose_device, describe, devices, first_usable, preference, unusable
from clsparse_py._ground.console import make_console, plain_table
from clsparse_py._ground.errors import BuildError, NoDeviceError, ProfileError
from clsparse_py._operations.spgemm import METHODS as PRODUCT_METHODS
from clsparse_py._operations.transpose.methods import METHODS
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic
from clsparse_py._precision.semiring import SEMIRINGS
from clsparse_py._tuner import listing
from clsparse_py._tuner.tunable import tunables

#: Type of the result of a timed operation, for type checkers.
T = TypeVar("T")

__all__ = ["add_tune_options", "find_device", "main", "parser"]

#: Width of a command's printed tables, in characters, if the output is no terminal.
_WIDTH = 100
#: Most runs of a timed operation, which is repeated until it builds no more kernels.
_TRIES = 3


class CommandError(Exception):
    """A command cannot do its work; the message says why."""


def find_device(substring: str | None) -> cl.Device:
    """Return the first usable device whose name or platform has a substring; without a substring the default device.

    Parameters
    ----------
    substring : str or None
        A part of the name of a platform or else of a device, in upper or lower case.

    Raises
    ------
    CommandError
        No device has the substring in its name or platform.
    NoDeviceError
        There is no device at all.
    """
    default = choose_device()
    if not substring:
        return default
    present = devices()
    sought = substring.strip().lower()
    # Names of platforms come first, as names of CPUs hold their maker; then whole names of devices, then parts of these names.
    ways: tuple[Callable[[cl.Device], bool], ...] = (
        lambda device: sought in device.platform.name.lower(),
        lambda device: sought == device.name.strip().lower(),
        lambda device: sought in device.name.lower(),
    )
    for matches in ways:
        if named := [*filter(matches, present)]:
            if device := first_usable(named):
                return device
            raise CommandError(f"--device: {_title(named[0])} cannot be used: {unusable(named[0])}")
    raise CommandError(f"--device: {substring!r} is in none of {', '.join(_title(device) for device in present)}")


def _title(device: cl.Device) -> str:
    """Return the name of a device with its platform, for messages."""
    return f"{device.name.strip()} ({device.platform.name.strip()})"


def _queue(device: cl.Device) -> tuple[cl.Context, cl.CommandQueue]:
    """Return a new context and queue of a device; the caller keeps both (quirk 9)."""
    context = cl.Context([device])
    return context, cl.CommandQueue(context, device)


def _console(*, stderr: bool = False) -> Console:
    """Return the console of a command's output or, with ``stderr``, of its errors."""
    console = make_console(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH
    return console


def _format_bytes(n: int) -> str:
    """Return a number of bytes as text, in GiB, MiB, KiB or bytes."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= scale:
            return f"{n / scale:.4g} {unit}"
    return f"{n} bytes"


def _format_field(name: str, value: Any) -> str:
    """Return the value of a field of `Device` as text for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in ("local_memory", "max_allocation", "global_memory"):
        return _format_bytes(value)
    if isinstance(value, tuple):
        return ", ".join(str(entry) for entry in value) or "none named"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _capabilities(device: Device) -> dict[str, str]:
    """Return the capabilities of a device as text, by the description of each capability."""
    capabilities: dict[str, str] = {}
    for field in dataclasses.fields(device):
        if field.name == "name":
            continue  # the heading of the column
        value = getattr(device, field.name)
        if field.name == "portability":
            exchanges = {"local": "local memory", "sub_group": "sub-group shuffle", "bpermute": "bpermute", "ptx": "inline PTX"}
            reach = f", {value.lane_width} lanes" if value.lane_width > 1 else ""
            capabilities["lane exchange"] = exchanges.get(value.lanes, value.lanes) + reach
            capabilities["loads of data read once"] = {"plain": "ordinary", "ptx": "inline PTX"}.get(
                value.load_once, value.load_once
            )
        else:
            capabilities[field.name.replace("_", " ")] = _format_field(field.name, value)
    return capabilities


def _devices(arguments: argparse.Namespace) -> int:
    """Run ``clsparse devices``: print capabilities of devices, refused kernels, older profiles, and the default device."""
    default = choose_device()
    listed = [find_device(arguments.device)] if arguments.device else devices()
    usable = [(device, unusable(device)) for device in listed]
    present = [device for device, reason in usable if reason is None]
    # PYOPENCL_CTX may name a device that is not in the list of devices, such as a sub-device.
    columns = present if arguments.device or default in present else [default, *present]
    why = "PYOPENCL_CTX names it" if os.environ.get("PYOPENCL_CTX") else _explain_default()
    console = _console()
    described = [_capabilities(describe(device)) for device in columns]
    # A table of devices has a column for each device, as many as fit the width of the console.
    per_table = max(1, (console.width - 24) // 26)
    for begin in range(0, len(columns), per_table):
        table = plain_table()
        table.add_column("", no_wrap=True, style="dim")
        for device in columns[begin : begin + per_table]:
            title = Text(device.name.strip())
            table.add_column(title.append("\n(default)", "green") if device == default else title, overflow="fold")
        for name in described[0]:
            table.add_row(name, *(Text(capabilities[name]) for capabilities in described[begin : begin + per_table]))
        console.print(table)
        console.print()
    for device, reason in usable:
        if reason is not None:
            console.print(Text(f"{_title(device)} cannot be used: {reason}."))
    for device, _ in usable:
        refused = refusals.load(programs.identity(device))
        kernels = [refusal for digest, refusal in refused.items() if digest != refusals.DEVICE]
        if kernels:
            console.print(Text(f"The compiler of {_title(device)} refuses (clsparse warmup --retry tries again):"))
        for refusal in kernels:
            note = "" if refusal.trusted else " (seen by one process: the next one tries again)"
            console.print(Text(f"  {refusal.kernel}: {refusal.reason}{note}"))
    older = [sentence for device in present for sentence in profiles.describe_older(profiles.find(describe(device)))]
    for sentence in dict.fromkeys(older):
        console.print(Text(sentence))
    if explanation := runtimes.explain_unseen():
        console.print(Text(explanation), soft_wrap=True)
    console.print(Text(f"{_title(default)} is used by default: {why}."), soft_wrap=True)
    return 0


def _explain_default() -> str:
    """Return the reason why the first usable device comes before the second one, in words."""
    in_order = devices()
    present = [device for device in in_order if unusable(device) is None]
    if len(present) == 1:
        return "it is the only one"
    first, second = (describe(device) for device in present[:2])
    if first.type != second.type:
        return f"a {first.type} comes before a {second.type}"
    if first.unified_memory != second.unified_memory:
        return "of its type, one with memory of its own comes first"
    reasons = (
        "the one that was tuned on this machine",
        "the one of the higher rank, by its profile,",
        "the one with more compute units times width of vectors times clock rate",
    )
    for reason, *compared in zip(reasons, *(preference(candidate, in_order) for candidate in present[:2]), strict=True):
        if compared[0] != compared[1]:
            return f"of its type, {reason} comes first"
    return "among equals, the order of the platforms decides"


def _source(arguments: argparse.Namespace) -> int:
    """Run ``clsparse source``: print the OpenCL C of a kernel for a device, or the names of all kernels."""
    device = find_device(arguments.device)
    described = describe(device)
    dtype = arguments.dtype or ("float64" if described.fp64 else "float32")
    arithmetic = Arithmetic(dtype, arguments.x_dtype or dtype, arguments.index, arguments.semiring)
    try:
        unsupported = arithmetic.needs_fp64 and not described.fp64
    except TypeError as error:
        raise CommandError(str(error)) from None
    if unsupported:
        raise CommandError(f"--dtype: {arithmetic.name} needs double precision, which {_title(device)} lacks; use float32")
    if arguments.scaled and arguments.semiring != "plus_times":
        raise CommandError("--scaled: alpha and beta belong to plus_times alone")
    records = catalogue(described, arithmetic, scaled=arguments.scaled)
    if arguments.name not in records:
        listed = "\n".join(f"  {name}" for name in records)
        if arguments.name is None:
            print(f"Kernels by template, and by the names that spmv_plan(kernel=...) takes:\n{listed}")
            return 0
        raise CommandError(f"no kernel is named {arguments.name!r}; there are\n{listed}")
    # The printed source is that of the built kernel, after its record was adapted to limits of the driver.
    context = cl.Context([device])
    record = programs.build(context, device, records[arguments.name]).parameters
    text = f"// {record.name}, for {_title(device)}\n{programs.render(record)}"
    console = _console()
    if console.is_terminal:
        console.print(Syntax(text, "c", background_color="default"), soft_wrap=True)
    else:
        print(text)
    return 0


def _warmup(arguments: argparse.Namespace) -> int:
    """Run ``clsparse warmup``: build the kernels that products are likely to need; ``--retry`` tries refused ones again."""
    if arguments.retry:
        # Compilers' refusals of kernels are forgotten first, as the choice of the device may pass over a device for a refusal.
        forgotten = sum(refusals.forget(programs.identity(device)) for device in devices())
        print(f"{forgotten} refusals forgotten")
    device = find_device(arguments.device)
    _context, queue = _queue(device)
    dtypes = arguments.dtype or ["float32", "float64"]
    columns = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task("warming up", total=None)
        count = clsparse_py.warmup(
            queue, [np.dtype(dtype) for dtype in dtypes], lambda done, of: bar.update(task, completed=done, total=of)
        )
    print(f"{count} kernels built for {_title(device)}")
    return 0


def _read(file: str, queue: cl.CommandQueue) -> clsparse_py.csr_array:
    """Return the matrix in a file on the device, in single precision if the device has no double precision."""
    host = read_matrix(file)
    if host.dtype.name in ("float64", "complex128") and not describe(queue.device).fp64:
        host = host.astype(np.float32 if host.dtype.kind == "f" else np.complex64)
    return clsparse_py.csr_array(host, queue=queue)


def _check_output(file: str | None) -> None:
    """Raise an error, before the result is computed, if the output file's name or folder does not suit a matrix file."""
    if file is not None:
        suffix_of(Path(file))
        if not Path(file).parent.is_dir():
            raise FileNotFoundError(f"{file}: there is no folder {Path(file).parent}")


def _time_calls(queue: cl.CommandQueue, action: Callable[[], T]) -> tuple[T, float]:
    """Run an operation, and return its result and the seconds until the queue has finished the operation's commands."""
    begin = time.perf_counter()
    result = action()
    queue.finish()
    return result, time.perf_counter() - begin


def _time_steady(queue: cl.CommandQueue, action: Callable[[], T]) -> tuple[T, float]:
    """Repeat an operation until it builds no more kernels, `_TRIES` times at most; return its last result and seconds."""
    for _ in range(_TRIES):
        kernels = len([*programs.built()])
        result, seconds = _time_calls(queue, action)
        if len([*programs.built()]) == kernels:
            break
    return result, seconds


def _multiply(arguments: argparse.Namespace) -> int:
    """Run ``clsparse multiply``: multiply the matrices in two files, print times and methods, and write the product."""
    device = find_device(arguments.device)
    _context, queue = _queue(device)
    options = {
        "method": arguments.method,
        "semiring": SEMIRINGS[arguments.semiring],
        "deterministic": not arguments.loose,
        "memory_limit": arguments.memory_limit,
        "max_nnz": arguments.max_nnz,
    }
    try:
        _check_output(arguments.output)
        A = _read(arguments.left, queue)
        B = A if arguments.right == arguments.left else _read(arguments.right, queue)
        if arguments.transpose:
            B = clsparse_py.transpose(B)
        (C, phases), first = _time_calls(queue, lambda: clsparse_py.spgemm(A, B, **options, profile=True))
        if arguments.output is not None:
            write_matrix(arguments.output, C.get())
        (rows, columns), entries = C.shape, C.nnz
        # The printed time of a product excludes allocating the first result and building kernels.
        del C
        phases = _time_steady(queue, lambda: clsparse_py.spgemm(A, B, **options, profile=True)[1])[0]
        seconds = sum(phases.values())
        print(f"{rows} x {columns}, {entries} entries, multiplied in {demo.duration(seconds)} on {_title(device)}")
        print(", ".join(f"{phase} {demo.duration(phase_seconds)}" for phase, phase_seconds in phases.items()))
        print(f"The first product, which builds its kernels or loads them, took {demo.duration(first)}")
        if arguments.explain:
            print(clsparse_py.spgemm_plan(A, B, **options).explain())
    except (OSError, ValueError, TypeError, MemoryError) as error:
        raise CommandError(str(error)) from None
    return 0


def _transpose(arguments: argparse.Namespace) -> int:
    """Run ``clsparse transpose``: transpose the matrix in a file, print times and the method, and write the result."""
    device = find_device(arguments.device)
    _context, queue = _queue(device)
    try:
        _check_output(arguments.output)
        A = _read(arguments.file, queue)
        transposed, first = _time_calls(queue, lambda: clsparse_py.transpose(A, method=arguments.method))
        if arguments.output is not None:
            write_matrix(arguments.output, transposed.get())
        (rows, columns), entries = transposed.shape, transposed.nnz
        del transposed
        seconds = _time_steady(queue, lambda: clsparse_py.transpose(A, method=arguments.method))[1]
    except (OSError, ValueError, TypeError, MemoryError) as error:
        raise CommandError(str(error)) from None
    print(f"{rows} x {columns}, {entries} entries, transposed in {demo.duration(seconds)} on {_title(device)}")
    print(f"The first call, which builds its kernels or loads them, took {demo.duration(first)}")
    print(clsparse_py.transpose_plan(A, method=arguments.method).explain())
    return 0


def _profile_show(arguments: argparse.Namespace) -> int:
    """Run ``clsparse profile show``: print the content of a profile, or the profiles that serve a device."""
    if arguments.name:
        _console().print(listing.contents(profiles.load(arguments.name)))
    else:
        _console().print(listing.overview(describe(find_device(arguments.device)), tunables()))
    return 0


def _profile_export(arguments: argparse.Namespace) -> int:
    """Run ``clsparse profile export``: write a profile to a file."""
    folder = Path(arguments.file).parent
    if not folder.is_dir():
        raise CommandError(f"{arguments.file}: there is no folder {folder}")
    profile = profiles.load(arguments.name) if arguments.name else profiles.find(describe(find_device(arguments.device)))[0]
    print(f"{profile} is written to {profiles.save(profile.content, Path(arguments.file))}")
    return 0


def _profile_import(arguments: argparse.Namespace) -> int:
    """Run ``clsparse profile import``: keep the profile in a file as one of the user's; an error if it is unusable or exists.

    With ``--replace`` a profile of the same name is overwritten.
    """
    path = Path(arguments.file)
    try:
        profile = profiles.read(path)
    except ProfileError as error:
        raise CommandError(f"{path}: {error}") from None
    if not arguments.replace and any(existing.stem == profile.name for existing in profiles.list_own()):
        raise CommandError(f"you have a profile {profile.name} already; --replace overwrites it")
    unknown = listing.unknown_labels(profile, tunables())
    if unknown.keys() >= profile.operations.keys():
        reasons = "; ".join(f"{operation}: {why}" for operation, why in unknown.items())
        raise CommandError(f"{path}: nothing in it can be used: {reasons or 'it has no trees'}")
    print(f"{profile} is kept in {profiles.save(profile.content)}")
    for operation, why in unknown.items():
        print(f"it is ignored for {operation}: {why}")
    served = [
        _title(device)
        for device in devices()
        if unusable(device) is None and any(loaded.name == profile.name for loaded in profiles.find(describe(device)))
    ]
    print(f"it serves {', '.join(served)}" if served else "it serves no device that is present")
    return 0


def _profile_remove(arguments: argparse.Namespace) -> int:
    """Run ``clsparse profile remove``: remove one of the user's profiles."""
    print(f"{profiles.remove(arguments.name)} is removed")
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    """Run ``clsparse demo``: multiply, transpose and square real matrices, check the results and time them."""
    _context, queue = _queue(find_device(arguments.device))
    return demo.run(queue, arguments.files, _console(), _console(stderr=True))


def _tune(arguments: argparse.Namespace) -> int:
    """Run ``clsparse tune``: tune a device and, if SpMV was tuned, measure its speed for products that devices share."""
    # The tuner is imported here, as no other command needs it.
    from clsparse_py._tuner.run import tune

    device, console = find_device(arguments.device), _console()
    try:
        code = tune(
            device,
            console,
            operations=arguments.operations,
            questions=arguments.questions,
            dtypes=arguments.dtypes,
            minutes=arguments.budget,
            corpus=arguments.corpus,
            largest=arguments.largest,
            exhaustive=arguments.exhaustive,
            report=arguments.report,
            out=arguments.out,
            fresh=arguments.fresh,
            commit=arguments.commit,
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    if code == 0 and "spmv" in (arguments.operations or ("spmv",)):
        _measure_speed(device, console)
    return code


def _measure_speed(device: cl.Device, console: Console) -> None:
    """Measure and keep the speed of a device in bytes per second, by which products are divided between devices."""
    from clsparse_py._operations.spmv import speed

    context = cl.Context([device])
    bytes_per_second = speed.measure(cl.CommandQueue(context, device))
    console.print(
        f"Speed, for products that it shares with other devices: {bytes_per_second / 1e9:.3g} GB/s; kept.", soft_wrap=True
    )


def _parse_positive(text: str) -> int:
    """Return the positive integer in the text of a command's option."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be positive, is {text}")
    return number


def _parse_not_negative(text: str) -> int:
    """Return the integer in the text of a command's option, which must not be negative."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, is {text}")
    return number


def _parse_minutes(text: str) -> float:
    """Return the minutes in the text of a command's option: a positive number of less than a year."""
    minutes = float(text)
    if not 0 < minutes < 525_600:
        raise argparse.ArgumentTypeError(f"must be positive, and less than a year, is {text} minutes")
    return minutes


def _parse_names(text: str) -> tuple[str, ...]:
    """Return the names in the text of a command's option, which commas separate."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError(f"must name something, is {text!r}")
    return names


def add_tune_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``clsparse tune`` to a parser, except for the device."""
    names: dict[str, Any] = {"type": _parse_names, "default": (), "metavar": "A,B"}
    command.add_argument("--operations", **names, help="tune only these, such as spmv,spgemm")
    command.add_argument("--questions", **names, help="ask only these, such as single,strategy")
    command.add_argument("--dtypes", **names, help="tune only for these, such as float64")
    command.add_argument("--budget", type=_parse_minutes, metavar="MINUTES", help="that measuring may take (8.5, on a CPU 18)")
    command.add_argument("--corpus", type=Path, metavar="DIR", help="measure with the matrices in this folder, too")
    command.add_argument("--largest", type=_parse_positive, metavar="N", help="most entries of a generated matrix")
    command.add_argument("--exhaustive", action="store_true", help="measure all that could win, not the promising alone")
    command.add_argument("--report", type=Path, metavar="DIR", help="write tables and plots of what it brings")
    command.add_argument("--out", type=Path, metavar="FILE", help="write the profile there, and go on using the present one")
    command.add_argument("--fresh", action="store_true", help="forget what earlier runs measured")
    command.add_argument("--commit", default="", help="what the profile says that it was made at, where no checkout tells")
    command.set_defaults(run=_tune)


def _add_products(commands: argparse._SubParsersAction[Any], on_device: argparse.ArgumentParser) -> None:
    """Add the commands ``transpose`` and ``multiply`` to the parser of commands."""
    command = commands.add_parser("transpose", parents=[on_device], help="transpose a matrix, say how, and write the result")
    command.add_argument("file", metavar="FILE", help="a matrix: .mtx, .mtx.gz or .npz")
    command.add_argument("-o", "--output", metavar="FILE", help="where the transposed goes: .mtx, .mtx.gz or .npz")
    command.add_argument("--method", default="auto", choices=("auto", *METHODS), help="(auto)")
    command.set_defaults(run=_transpose)

    command = commands.add_parser("multiply", parents=[on_device], help="multiply two matrices, say how, and write the result")
    command.add_argument("left", metavar="A", help="a matrix: .mtx, .mtx.gz or .npz")
    command.add_argument("right", metavar="B", help="another one, or the same file again")
    command.add_argument("-o", "--output", metavar="FILE", help="where the product goes: .mtx, .mtx.gz or .npz")
    command.add_argument("-T", "--transpose", action="store_true", help="multiply with the transposed of B")
    command.add_argument("--method", default="auto", choices=("auto", *PRODUCT_METHODS), help="(auto)")
    command.add_argument("--semiring", default="plus_times", choices=SEMIRINGS, help="(plus_times)")
    command.add_argument("--loose", action="store_true", help="allow forms whose result may differ in the last bits each time")
    command.add_argument("--memory-limit", type=_parse_positive, metavar="BYTES", help="of the workspace (half of the device's)")
    command.add_argument("--max-nnz", type=_parse_not_negative, metavar="N", help="refuse a product with more entries")
    command.add_argument("--explain", action="store_true", help="print which methods make which rows")
    command.set_defaults(run=_multiply)


def _add_profile(commands: argparse._SubParsersAction[Any], on_device: argparse.ArgumentParser) -> None:
    """Add the command ``profile`` and its actions to the parser of commands."""
    command = commands.add_parser("profile", help="show, export, import and remove profiles, by which kernels are chosen")
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    command = actions.add_parser("show", parents=[on_device], help="say which profiles serve a device, or what is in one")
    command.add_argument("name", nargs="?", metavar="NAME", help="of a profile, whose trees are shown; none: which there are")
    command.set_defaults(run=_profile_show)
    command = actions.add_parser("export", parents=[on_device], help="write a profile to a file")
    command.add_argument("file", metavar="FILE")
    command.add_argument("name", nargs="?", metavar="NAME", help="(the first that serves the device)")
    command.set_defaults(run=_profile_export)
    command = actions.add_parser("import", help="keep the profile in a file as one of yours")
    command.add_argument("file", metavar="FILE")
    command.add_argument("--replace", action="store_true", help="even where you have one of that name")
    command.set_defaults(run=_profile_import)
    command = actions.add_parser("remove", help="remove one of your profiles")
    command.add_argument("name", metavar="NAME")
    command.set_defaults(run=_profile_remove)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments of ``clsparse``."""
    whole = argparse.ArgumentParser(prog="clsparse", description="Sparse linear algebra on any OpenCL device.")
    whole.add_argument("--version", action="version", version=f"clsparse_py {clsparse_py.__version__}")
    whole.add_argument("-v", "--verbose", action="store_true", help="say what is built, cached and adapted")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    on_device = argparse.ArgumentParser(add_help=False)
    on_device.add_argument("--device", metavar="SUBSTRING", help="the first device in whose name or platform this is found")

    command = commands.add_parser("devices", parents=[on_device], help="list devices, what they can do, and which one is used")
    command.set_defaults(run=_devices)

    command = commands.add_parser("source", parents=[on_device], help="print a kernel as it is built for a device")
    command.add_argument("name", nargs="?", metavar="NAME", help='such as "spmv/adaptive" or "subvector8"; none: list them')
    command.add_argument("--dtype", choices=OPENCL_TYPES, metavar="DTYPE", help="of A's values (float64, or float32 without)")
    command.add_argument("--x-dtype", choices=OPENCL_TYPES, metavar="DTYPE", help="of x's values (A's)")
    command.add_argument("--index", default="int32", choices=("int32", "int64"), help="of indices and indptr (int32)")
    command.add_argument("--semiring", default="plus_times", choices=SEMIRINGS, help="(plus_times)")
    command.add_argument("--scaled", action="store_true", help="with alpha and beta")
    command.set_defaults(run=_source)

    command = commands.add_parser("warmup", parents=[on_device], help="build the kernels that products are likely to need")
    command.add_argument("--dtype", action="append", choices=OPENCL_TYPES, metavar="DTYPE", help="may be repeated")
    command.add_argument("--retry", action="store_true", help="first forget what compilers refused, and so try it again")
    command.set_defaults(run=_warmup)

    _add_products(commands, on_device)
    add_tune_options(
        commands.add_parser("tune", parents=[on_device], help="measure what is fastest on a device, and use it from then on")
    )

    _add_profile(commands, on_device)
    command = commands.add_parser("demo", parents=[on_device], help="multiply real matrices, check against SciPy, and time it")
    command.add_argument("files", nargs="*", metavar="FILE", help="more matrices: .mtx, .mtx.gz or .npz")
    command.set_defaults(run=_demo)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ``clsparse`` command, and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments, by default those of the process.

    Returns
    -------
    int
        The exit code: 0; 1 if there is no device, a kernel does not build, or a result is wrong; 2 for wrong arguments.
    """
    parsed = parser().parse_args(arguments)
    logging.basicConfig(level=logging.DEBUG if parsed.verbose else logging.WARNING, format="%(name)s: %(message)s")
    try:
        code: int = parsed.run(parsed)
    except (CommandError, ProfileError) as error:
        print(f"clsparse: {error}", file=sys.stderr)
        return 2
    except (NoDeviceError, BuildError, cl.Error) as error:
        print(f"clsparse: {error}", file=sys.stderr)
        return 1
    return code
