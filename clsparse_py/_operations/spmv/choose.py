"""Choose scheme, kernels and parameters of SpMV from features, capabilities and profiles, without a device; and explain them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal, cast, get_args

import numpy as np
from typing_extensions import override

from clsparse_py._build.plain import explain_plain
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.profiles import Profile, decide, rules
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device
from clsparse_py._ground.errors import require_name
from clsparse_py._ground.records import dataclass
from clsparse_py._ground.tables import Shown, Table
from clsparse_py._matrix.product import ProductKernel
from clsparse_py._operations.spmv.binning import N_BINS, Scheme
from clsparse_py._operations.spmv.features import Features
from clsparse_py._operations.spmv.kernels import Adaptive, Chunked, Merge, Streamed, Subvector, VectorLong
from clsparse_py._precision.arithmetic import Arithmetic

__all__ = [
    "BALANCED",
    "KERNELS",
    "Decision",
    "Explanation",
    "KernelChoice",
    "Share",
    "Thresholds",
    "choose",
    "default_choice",
    "has_no_long_row",
]

#: Names of the SpMV kernels that divide A's entries evenly by themselves: they take all rows in order, not bins.
BalancedName = Literal["adaptive", "nonzero_split", "merge", "chunked", "narrow"]
#: Names of the SpMV kernels that divide A's entries evenly by themselves, in the order of `BalancedName`.
BALANCED: tuple[BalancedName, ...] = get_args(BalancedName)
#: Names of all SpMV kernels. To a row, "serial" takes one work-item, "subvectorX" X of them, "vector" a work-group, and
#: "vector_long" one or, if the row is long, several work-groups; the others divide A's entries evenly by themselves.
KernelName = Literal[
    "serial", "subvector2", "subvector4", "subvector8", "subvector16", "subvector32", "subvector64", "subvector128", "vector",
    "vector_long", BalancedName,
]  # fmt: skip
#: Names of all SpMV kernels, in the order of `KernelName`.
KERNELS: tuple[KernelName, ...] = get_args(KernelName)

#: Greatest work-group size, in work-items, and greatest ``items`` and ``unroll``, in entries, of a KernelChoice: compilers unroll
#: loops over the latter two. For the ``items`` of "chunked", see `_MAX_CHUNKS`.
_MAXIMA = {"work_group": 1 << 16, "items": 64, "unroll": 64}
#: Greatest ``items``, chunks of rows to a core, of the SpMV kernel "chunked", which unrolls no loop over chunks.
_MAX_CHUNKS = 1 << 12


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Thresholds of SpMV that decision trees do not decide."""

    operation = "spmv"

    #: Number of products after which a plan compresses its columns, to row patterns or to 16 bits. Compression takes the device
    #: as long as one product, which ten products repay; loading kernels takes the host milliseconds.
    narrow_after: int = number(32, "products", least=1, most=1 << 31)
    #: Least number of a matrix's rows for a plan to look for row patterns: fewer rows have hardly fewer patterns than rows.
    min_patterned_rows: int = number(1 << 12, "rows", least=1)
    #: Greatest number of entries of a matrix's longest row for a plan to look for row patterns; 0: no plan does. A profile sets
    #: it where row patterns were measured to be faster than columns in 16 bits.
    max_patterned_row: int = number(0, "entries of a row", most=255)
    #: Greatest number of a row's entries that one work-group of "vector_long" sums; several work-groups share a longer row.
    piece: int = number(1 << 14, "entries of a row", least=1)
    #: Greatest ratio of rows to entries of a part of A, where parts have equal numbers of entries. If a part is above it, as
    #: where many rows are empty, all parts are cut anew, with equal numbers of rows plus entries.
    max_rows_by_step: int = number(16, "rows by the entries of a part", least=1)


@dataclass(frozen=True)
class KernelChoice:
    """A kernel and its tunable parameters; values that the device does not take become the nearest that it does.

    Attributes
    ----------
    name : str
        One of `KERNELS`.
    work_group : int
        Work-items in a work-group.
    items : int
        "merge" and those that take entries: entries, or steps on the merge path, to a work-item. "chunked": chunks to a
        compute unit.
    unroll : int
        Entries that a work-item reads ahead in the other kernels.
    """

    name: KernelName
    work_group: int = 256
    items: int = 4
    unroll: int = 4

    def __post_init__(self) -> None:
        require_name("kernel", self.name, KERNELS)
        for field, maximum in _MAXIMA.items():
            highest = _MAX_CHUNKS if (self.name, field) == ("chunked", "items") else maximum
            if not 1 <= getattr(self, field) <= highest:
                raise ValueError(f"kernel: {field} must be from 1 to {highest}, is {getattr(self, field)}")

    @classmethod
    def parse(cls, label: str) -> KernelChoice:
        """Return the SpMV kernel choice of a label: name, work-group size and ``items`` or ``unroll``, such as "adaptive/128/6".

        Raises
        ------
        ValueError
            It names none.
        """
        match = re.fullmatch(r"(\w+)/([0-9]{1,9})/([0-9]{1,9})", label)
        if match is None:
            raise ValueError(f'kernel: must be such as "adaptive/128/6", is {label!r}')
        name = cast("KernelName", match[1])  # checked when the choice is made
        work_group, parameter = int(match[2]), int(match[3])
        return cls(name, work_group, items=parameter) if name in BALANCED else cls(name, work_group, unroll=parameter)

    @classmethod
    def parse_for_bin(cls, label: str) -> KernelChoice:
        """Return the SpMV kernel choice that a label names for a bin (rows of one size); refuse a kernel of `BALANCED`."""
        choice = cls.parse(label)
        if choice.name in BALANCED:
            raise ValueError(f"kernel: {choice.name} balances rows by itself and takes no bins")
        return choice

    @property
    def label(self) -> str:
        """The label of this SpMV kernel choice, such as "adaptive/128/6", which `parse` takes."""
        return f"{self.name}/{self.work_group}/{self.number}"

    @property
    def number(self) -> int:
        """The second tunable parameter of the chosen SpMV kernel, after the work-group size: `items` or `unroll`."""
        return self.items if self.name in BALANCED else self.unroll

    @property
    def lanes(self) -> int:
        """Number of work-items to a row, X, of an SpMV kernel of whole rows: 1 for "serial", the work-group for "vector"."""
        match = re.fullmatch(r"subvector(\d+)", self.name)
        if match:
            return int(match[1])
        return 1 if self.name == "serial" else self.work_group

    def record(self, device: Device, arithmetic: Arithmetic, scaled: bool) -> ProductKernel:
        """Return the chosen SpMV kernel's nearest legal parameters for rows in order; ``scaled``: with factors alpha and beta."""
        common = device, arithmetic, scaled, self.work_group
        if self.name == "adaptive":
            return Adaptive.legal(*common, self.items)
        if self.name == "nonzero_split":
            return Adaptive.legal(*common, self.items, "even")
        if self.name == "merge":
            return Merge.legal(*common, self.items)
        if self.name == "chunked":
            return Chunked.legal(*common)
        if self.name == "vector_long":
            return VectorLong.legal(*common, self.unroll)
        if self.name == "narrow":
            return Streamed.legal(*common, self.items)
        return Subvector.legal(device, arithmetic, scaled, self.lanes, self.work_group, self.unroll, binned=False)

    def __str__(self) -> str:
        detail = f", {self.items} items" if self.name in BALANCED else f", unrolled by {self.unroll}"
        return f"{self.name} (work-group {self.work_group}{detail})"


@dataclass(frozen=True)
class Decision:
    """A decision on the binning scheme and the kernels of SpMV, and its reason.

    Attributes
    ----------
    scheme : Scheme
        How rows are binned.
    kernels : tuple of tuple of KernelChoice
        For "single" one kernel; otherwise for each of the scheme's sides the kernel of each of its `N_BINS` bins.
    rule : str
        The reason: the profile and the comparisons that led there, or that the caller named it.
    deciding : tuple of Profile
        The profiles that decided, of scheme and kernels; none if the caller named the kernels.
    """

    scheme: Scheme
    kernels: tuple[tuple[KernelChoice, ...], ...]
    rule: str
    deciding: tuple[Profile, ...] = ()


@dataclass(frozen=True)
class Share:
    """Rows of A that one SpMV kernel processes: a line of an `Explanation`."""

    rows: int
    kernel: str
    built: str
    why: str


@dataclass(frozen=True)
class Explanation(Shown):
    """Which rows of A go to which SpMV kernel with which parameters, and why. Prints as a table.

    Attributes
    ----------
    scheme : str
        How rows are binned.
    rule : str
        The reason: the profile and the way through its trees, or that the caller named it.
    shares : tuple of Share
        Rows, the kernel chosen, the kernel built (None until the first product), and why.
    launches : int
        Kernel launches of a product.
    """

    scheme: str
    rule: str
    shares: tuple[Share, ...]
    launches: int

    __repr__ = Shown.__repr__

    @property
    @override
    def table(self) -> Table:
        """The table of the explanation: scheme and number of launches, a line for each `Share` of A's rows, and the reason."""
        title = f"SpMV: {self.scheme}. Launches: {self.launches}"
        rows = [(f"{share.rows:,}", share.kernel, share.built, share.why) for share in self.shares]
        return Table(title, ("rows", "kernel", "built as", "why"), rows, self.rule, numbers="rows")


def has_no_long_row(features: Features, device: Device) -> bool:
    """Return whether a matrix's longest row has at most a compute unit's mean share of entries, so that no row need be cut."""
    return features.longest * device.compute_units <= features.nnz


def choose(
    features: Features, device: Device, scheme: str | Scheme, kernel: KernelName | KernelChoice | None, dtype: str = "float64"
) -> Decision:
    """Decide scheme and kernels of SpMV: by the names that the caller gives and, for the rest, by the device's profile.

    Parameters
    ----------
    features : Features
        Of the matrix.
    device : Device
        That it is to run on.
    scheme : str or Scheme
        "auto", a label that `Scheme.parse` takes, or a scheme.
    kernel : one of KERNELS, KernelChoice or None
        The kernel for all rows; None leaves it to the profile.
    dtype : str
        Of A's values.

    Raises
    ------
    ValueError
        An unknown scheme or kernel, or a kernel that balances by itself with bins.
    """
    named_kernel = default_choice(kernel, device) if isinstance(kernel, str) else kernel
    if named_kernel is not None and not isinstance(named_kernel, KernelChoice):
        raise TypeError(f"kernel: must be a name, a KernelChoice or None, is {type(named_kernel).__name__}")
    if device.is_plain:
        named = str(scheme if isinstance(scheme, Scheme) or scheme == "auto" else Scheme.parse(scheme))
        choices = named, "auto" if named_kernel is None else named_kernel.name
        why = explain_plain(*(choice for choice in choices if choice not in ("single", "serial")))
        return Decision(Scheme("single"), ((default_choice("serial", device),),), why)
    if scheme == "auto" and named_kernel is not None:
        return Decision(Scheme("single"), ((named_kernel,),), "the kernel was named")
    numbers = features.numbers(device.compute_units, np.dtype(dtype).itemsize)
    deciding: tuple[Profile, ...] = ()
    if scheme == "auto":
        ruled = decide(device, "spmv", dtype, "scheme", numbers, Scheme.parse)
        parsed, deciding, why = ruled.value, (ruled.rules.profile,), f"{ruled.profile}: {ruled}"
    else:
        parsed = scheme if isinstance(scheme, Scheme) else Scheme.parse(scheme)
        why = "the scheme was named"
    if named_kernel is not None:
        return Decision(parsed, _repeat_for_bins(parsed, named_kernel), "the scheme and the kernel were named")
    if parsed.name == "single":
        of_all = decide(device, "spmv", dtype, "single", numbers, KernelChoice.parse)
        source = "" if of_all.rules.profile in deciding else f"{of_all.profile}: "
        return Decision(parsed, ((of_all.value,),), f"{why}; {source}{of_all}", (*deciding, of_all.rules.profile))
    of_bins = rules(device, "spmv", dtype, "bin", {**numbers, "granularity": 1, "bin": 0}, KernelChoice.parse_for_bin)
    source = "" if of_bins.profile in deciding else f"{of_bins.profile}: "
    open_choice = of_bins.restrict(numbers)
    kernels = tuple(
        tuple(open_choice.take({"granularity": side.granularity, "bin": number}) for number in range(N_BINS))
        for side in parsed.sides
    )
    return Decision(parsed, kernels, f"{why}; {source}kernels by bin", (*deciding, of_bins.profile))


def _repeat_for_bins(scheme: Scheme, named_kernel: KernelChoice) -> tuple[tuple[KernelChoice, ...], ...]:
    """Return the SpMV kernel that the caller named, once ("single") or for each bin; a ValueError if it does not suit bins."""
    if scheme.name == "single":
        return ((named_kernel,),)
    if named_kernel.name in BALANCED:
        raise ValueError(f'kernel: {named_kernel.name} balances rows by itself; it goes with scheme="single", not "{scheme}"')
    if named_kernel.name == "vector_long" and scheme.name != "fine":
        raise ValueError(f'kernel: vector_long cuts single rows; it goes with scheme="single" or "fine", not "{scheme}"')
    return ((named_kernel,) * N_BINS,) * len(scheme.sides)


def default_choice(name: KernelName, device: Device) -> KernelChoice:
    """Return the SpMV kernel of a name with its default parameters on a device: work-group size, items, unrolling."""
    choice = KernelChoice(name)
    if name == "adaptive":
        return replace(choice, items=5, work_group=128)
    if name == "nonzero_split":
        return replace(choice, items=2)
    if name == "chunked":
        return replace(choice, items=32, work_group=1)
    return replace(choice, work_group=64) if device.lanes_are_loops else choice
