"""Decide which kernels take which rows with which parameters: pure functions of features and capabilities, without a device."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from clsparse_py.arithmetic import Arithmetic
from clsparse_py.device import Device
from clsparse_py.product import ProductKernel
from clsparse_py.spmv.binning import N_BINS, Scheme, Side
from clsparse_py.spmv.features import Features
from clsparse_py.spmv.kernels import WIDTHS, Adaptive, Chunked, Merge, Pieces, Subvector

__all__ = ["BALANCED", "KERNELS", "Decision", "KernelChoice", "choose", "whole_rows"]

#: Kernels that balance entries by themselves: they take all rows in order.
BALANCED = ("adaptive", "split", "merge", "chunked")
#: All kernels by name; "subvectorX" takes X work-items to a row, "pieces" several work-groups.
KERNELS = ("serial", *(f"subvector{width}" for width in WIDTHS[1:]), "vector", "pieces", *BALANCED)

#: Rows above this many entries are shared by several work-groups where rows are binned one by one.
PIECE = 1 << 14


@dataclass(frozen=True)
class KernelChoice:
    """A kernel and its tunable parameters; what the device does not take becomes the nearest that it does.

    Attributes
    ----------
    name : str
        One of `KERNELS`.
    work_group : int
        Work-items in a work-group.
    items : int
        "adaptive", "split" and "merge": entries, or steps on the merge path, to a work-item. "chunked": chunks to a compute unit.
    unroll : int
        Entries that a work-item reads ahead in the other kernels.
    """

    name: str
    work_group: int = 256
    items: int = 4
    unroll: int = 4

    def __post_init__(self) -> None:
        if self.name not in KERNELS:
            raise ValueError(f"kernel: must be one of {', '.join(KERNELS)}, is {self.name!r}")
        for field in ("work_group", "items", "unroll"):
            if getattr(self, field) < 1:
                raise ValueError(f"kernel: {field} must be positive, is {getattr(self, field)}")

    @property
    def width(self) -> int:
        """X, work-items to a row, of the kernels that take whole rows."""
        match = re.fullmatch(r"subvector(\d+)", self.name)
        if match:
            return int(match[1])
        return 1 if self.name == "serial" else self.work_group

    def record(self, device: Device, arithmetic: Arithmetic, scaled: bool) -> ProductKernel:
        """Return the legal record nearest to this choice, of a kernel that takes all rows in order, or pieces of them."""
        common = device, arithmetic, scaled, self.work_group
        if self.name == "adaptive":
            return Adaptive.legal(*common, self.items)
        if self.name == "split":
            return Adaptive.legal(*common, self.items, "even")
        if self.name == "merge":
            return Merge.legal(*common, self.items)
        if self.name == "chunked":
            return Chunked.legal(*common)
        if self.name == "pieces":
            return Pieces.legal(*common, self.unroll)
        return Subvector.legal(device, arithmetic, scaled, self.width, self.work_group, self.unroll, binned=False)

    def __str__(self) -> str:
        detail = f", {self.items} items" if self.name in BALANCED else f", unrolled by {self.unroll}"
        return f"{self.name} (work-group {self.work_group}{detail})"


@dataclass(frozen=True)
class Decision:
    """What was decided, and why.

    Attributes
    ----------
    scheme : Scheme
        How rows are binned.
    kernels : tuple of tuple of KernelChoice
        For "single" one kernel; otherwise for each of the scheme's sides the kernel of each of its `N_BINS` bins.
    rule : str
        The rule that decided, in words.
    """

    scheme: Scheme
    kernels: tuple[tuple[KernelChoice, ...], ...]
    rule: str


def _on_gpu(features: Features, device: Device, itemsize: int) -> tuple[KernelChoice, str]:
    """Return the kernel for all rows on devices that hide latency with many work-items.

    The limits are those between the fastest kernels over the suite paper-spmv on such a device; see ``docs/performance.md``.
    """
    mean, longest, nnz = features.mean, features.longest, features.nnz
    single = itemsize <= 4
    if longest <= 8 and nnz >= 1 << 24:
        return KernelChoice("serial", 512, unroll=4), "short rows alike, many entries: a work-item to a row"
    if longest <= 16 and mean < 12 and nnz * (itemsize + 4) < 1 << 25 and (single or longest <= 4):
        return KernelChoice("serial", 128, unroll=2), "short rows that stay in a cache: a work-item to a row"
    if longest <= 8 * mean:
        if mean >= 1000:
            return KernelChoice("subvector32", 256, unroll=2), "very long rows alike: lanes enough to read them in few steps"
        if mean >= 200:
            return KernelChoice("adaptive", 128, 6), "long rows alike: a stream of entries in small work-groups"
        if mean >= 32 or (mean >= 12 and longest > 2 * mean):
            return KernelChoice("subvector8", 128, unroll=4), "longer rows alike: a few lanes to each"
        if 12 <= mean < 20 and longest <= 1.5 * mean:
            name = "subvector8" if single else "subvector16"
            return KernelChoice(name, 128, unroll=2), "rows of one length: lanes to read them in one step or two"
        if mean < 12 and longest > 16:
            return KernelChoice("subvector2", 128, unroll=1), "short rows alike: two lanes to each"
    if longest <= 64:
        shape = (128, 6) if single and mean >= 6 else (256, 4)
        return KernelChoice("adaptive", *shape), "short rows: a stream of entries in small work-groups"
    if mean >= 64:
        return KernelChoice("adaptive", 128, 6), "long rows, uneven: parts of equal entries"
    if nnz >= 1 << 23:
        return KernelChoice("split", 512 if single else 1024, 2), "uneven rows, many entries: even parts, whatever rows they cut"
    if whole_rows(features, device):
        shape = (512, 2) if mean >= 8 else (256, 4)
        return KernelChoice("adaptive", *shape), "uneven rows, none too long for one compute unit"
    return KernelChoice("split", 256, 2), "uneven rows, some too long for one compute unit: even parts, whatever rows they cut"


def whole_rows(features: Features, device: Device) -> bool:
    """Return whether no row is longer than what a compute unit has to do anyway: then none need be cut."""
    return features.longest * device.compute_units <= features.nnz


def _of_bins(device: Device, side: Side) -> tuple[KernelChoice, ...]:
    """Return a kernel for each bin of a side: as many work-items to a row as keep some entries for each."""
    choices = []
    for bin_number in range(N_BINS):
        # Bin b holds virtual rows of U rows and from U * b to U * (b + 1) entries: rows of b entries on average.
        width = max((width for width in WIDTHS if 2 * width <= max(bin_number, 2)), default=1)
        if bin_number == N_BINS - 1:
            choices.append(KernelChoice("pieces" if side.granularity == 1 else "subvector64", 256, unroll=4))
        elif width == 1 or device.is_cpu:
            choices.append(KernelChoice("serial", 256, unroll=2))
        else:
            choices.append(KernelChoice(f"subvector{width}", 256, unroll=2))
    return tuple(choices)


def choose(features: Features, device: Device, scheme: str, kernel: str | KernelChoice | None, itemsize: int = 8) -> Decision:
    """Decide on a plan.

    Parameters
    ----------
    features : Features
        Of the matrix.
    device : Device
        That it is to run on.
    scheme : str
        "auto", or what `Scheme.parse` takes.
    kernel : str, KernelChoice or None
        The kernel for all rows; None leaves it to the cost rule.
    itemsize : int
        Bytes of a value.

    Raises
    ------
    ValueError
        An unknown scheme or kernel, or a kernel that balances by itself with bins.
    """
    asked = KernelChoice(kernel) if isinstance(kernel, str) else kernel
    if asked is not None and not isinstance(asked, KernelChoice):
        raise TypeError(f"kernel: must be a name, a KernelChoice or None, is {type(asked).__name__}")
    if isinstance(kernel, str):
        asked = _default_shape(kernel, device)
    if scheme == "auto":
        if asked is not None:
            return Decision(Scheme("single"), ((asked,),), "the kernel was named")
        if device.is_cpu:
            return Decision(
                Scheme("single"), ((_default_shape("chunked", device),),), "a CPU device: rows in chunks of equal work"
            )
        chosen, why = _on_gpu(features, device, itemsize)
        return Decision(Scheme("single"), ((chosen,),), why)
    parsed = Scheme.parse(scheme)
    if parsed.name == "single":
        if asked is not None:
            return Decision(parsed, ((asked,),), "the scheme and the kernel were named")
        chosen = _default_shape("chunked", device) if device.is_cpu else _on_gpu(features, device, itemsize)[0]
        return Decision(parsed, ((chosen,),), "the scheme was named")
    if asked is None:
        return Decision(
            parsed,
            tuple(_of_bins(device, side) for side in parsed.sides),
            "the scheme was named; kernels by the mean row of each bin",
        )
    if asked.name in BALANCED:
        raise ValueError(f'kernel: {asked.name} balances rows by itself; it goes with scheme="single", not "{scheme}"')
    if asked.name == "pieces" and parsed.name != "fine":
        raise ValueError(f'kernel: pieces cuts single rows; it goes with scheme="single" or "fine", not "{scheme}"')
    return Decision(parsed, ((asked,) * N_BINS,) * len(parsed.sides), "the scheme and the kernel were named")


def _default_shape(name: str, device: Device) -> KernelChoice:
    """Return the named kernel with the parameters that it takes by default."""
    choice = KernelChoice(name)
    if name == "adaptive":
        return replace(choice, items=5, work_group=128)
    if name == "split":
        return replace(choice, items=2)
    if name == "chunked":
        return replace(choice, items=32, work_group=1)
    return replace(choice, work_group=64) if device.is_cpu else choice
