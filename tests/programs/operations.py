"""The operations of programs: each draws its operands and options, and says what ours is, the oracle, and what has to be equal.

To add one, write a function of ten lines below `operation`: draw operands (``d.matrix``, ``d.array``), return ``Step(name, ours,
oracle, grade=...)``. Texts see ``np``, ``sp`` (ours: clsparse_py, the oracle's: scipy.sparse), ``linalg``, the queues ``q`` and
``q2``; the oracle's see the functions of `references` besides. Raise `SkipError` where there is nothing to do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from clsparse_py._device.device import describe
from clsparse_py._operations.spgemm.registry import METHODS
from clsparse_py._precision.semiring import SEMIRINGS
from tests.programs import prelude
from tests.programs.drawing import Draw, SkipError
from tests.programs.program import Step

__all__ = ["OPERATIONS", "operation"]

OPERATIONS: dict[str, tuple[float, Callable[[Draw], Step]]] = {}
#: Methods that SpGEMM, SpTRANS and SpMV may be told to take.
SPGEMM = ("auto", *METHODS)
KERNELS = (
    "serial", "subvector4", "subvector32", "vector", "vector_long", "adaptive", "nonzero_split", "merge", "chunked",
    "narrow",
)  # fmt: skip
SCHEMES = ("auto", "single", "fine", "coarse-10", "hybrid-1000")
NARROW = ("int8", "int16")
WORDS = ("int32", "int64")
WIDE = ("int64", "uint64")


def operation(name: str, weight: float = 1.0) -> Callable[[Callable[[Draw], Step]], Callable[[Draw], Step]]:
    """Register an operation by its name, and how often it is drawn."""

    def register(draw: Callable[[Draw], Step]) -> Callable[[Draw], Step]:
        OPERATIONS[name] = weight, draw
        return draw

    return register


def simple(
    name: str,
    *texts: str,
    kinds: str = "biufc",
    grade: str = "move",
    weight: float = 1.0,
    formats: tuple[str, ...] = ("csr", "csc", "coo"),
    signs: bool = False,
    sizes: bool = False,
    narrow: bool = False,
    **more: Any,
) -> None:
    """Register an operation of one matrix: one of some texts, in which A stands for it; of ``sizes`` they are bounds, too.

    ``narrow``: often it has integers of one sign that are smaller than a word.
    """

    @operation(name, weight)
    def draw(d: Draw) -> Step:
        of_one_sign = narrow and d.chance(0.6)
        A = d.integers(NARROW, special="one sign") if of_one_sign else d.matrix(kinds=kinds, formats=formats)
        more["signs"] = signs and d.canonical(A)
        text = (d.one if of_one_sign else d.few)(texts).replace("{A}", A)
        return Step(name, text, grade=grade, terms=max(d.shape(A)), magnitude=text if sizes else "", **more)


# Products.
def sums_of_products(d: Draw, A: str) -> dict[str, Any]:
    """Return how the entries of a sparse product of A are judged."""
    return {"grade": "product", "terms": d.shape(A)[1], "stored": False}


@operation("A @ x", 3)
def _product(d: Draw) -> Step:
    A = d.matrix()
    side = d.one(["A @ x", "A.T @ x", "x @ A", "A @ X", "A @ one", "A.dot"])
    m, n = d.shape(A)
    if side in ("A @ x", "A.dot"):
        x = d.array((n,))
        ours = f"{A} @ {x}" if side == "A @ x" else f"{A}.dot({x})"
        return Step("A @ x", ours, f"{A}.tocsr() @ {x}", grade="product", terms=n)  # SciPy's COO drops a lone row
    if side == "A.T @ x":
        x = d.array((m,))
        return Step("A.T @ x", f"{A}.T @ {x}", f"{A}.T.tocsr() @ {x}", grade="product", terms=m)
    if side == "x @ A":
        x = d.array((m,))
        return Step("x @ A", f"{x} @ {A}", f"product_from_left({A}, {x})", grade="product", terms=m)
    k = 1 if side == "A @ one" else int(d.few([2, 3, 7, 8, 20]))
    X = d.array((n, k))
    return Step("A @ X", f"{A} @ {X}", f"{A}.tocsr() @ {X}", grade="product", terms=n)  # SciPy's COO passes over stored zeros


@operation("spmv", 2)
def _spmv(d: Draw) -> Step:
    A = d.matrix(formats=("csr",))
    m, n = d.shape(A)
    x = d.array((n,), on_device=True)
    result = np.result_type(d.values[A], d.values[x])
    alpha, beta = d.scalar(result), d.scalar(result)
    # A plan that expects many calls compresses A's columns before the first.
    calls = ", expected_calls=100" if d.chance(0.4) else ""
    plan = (
        f"plan=sp.spmv_plan({A}, kernel={d.few(KERNELS)!r}{calls})"
        if d.chance(0.7)
        else f"plan=sp.spmv_plan({A}, scheme={d.few(SCHEMES)!r})"
    )
    tail = f", {plan}" if d.chance(0.8) else ""
    if result.kind == "b" or d.chance(0.5):
        return Step("spmv", f"sp.spmv({A}, {x}{tail})", f"{A} @ {x}", grade="product", terms=n)
    if d.chance(0.4):
        return Step(
            "spmv alpha", f"sp.spmv({A}, {x}, alpha={alpha}{tail})", f"scaled({alpha}, {A} @ {x})", grade="product", terms=n
        )
    y = d.array((m,), dtype=result.name, on_device=True)
    oracle = f"scaled({alpha}, {A} @ {x}, {beta}, {y})"
    return Step(
        "spmv out",
        f"sp.spmv({A}, {x}, alpha={alpha}, beta={beta}, out={y}.copy(){tail})",
        oracle,
        grade="product",
        terms=n + 2,
        apart=(y,),
    )


@operation("spmm", 2)
def _spmm(d: Draw) -> Step:
    A = d.matrix(formats=("csr",))
    n = d.shape(A)[1]
    X = d.array((n, int(d.few([1, 2, 3, 5, 8, 17]))), on_device=True)
    tail = f", work_group={d.few([1, 7, 64])}" if d.chance(0.3) else ""
    return Step("spmm", f"sp.spmm({A}, {X}{tail})", f"{A} @ {X}", grade="product", terms=n)


@operation("products by semirings", 2)
def _semirings(d: Draw) -> Step:
    A = d.matrix(kinds="biuf", formats=("csr",))
    n, name = d.shape(A)[1], d.few([*SEMIRINGS][1:])
    x = d.array((n,) if d.chance(0.5) else (n, 3), kinds="biuf", on_device=True)
    function = "spmv" if d.values[x].ndim == 1 else "spmm"
    return Step(name, f"sp.{function}({A}, {x}, semiring=sp.{name})", f"by_semiring({A}, {x}, {name!r})", signs=False)


@operation("A @ B", 3)
def _spgemm(d: Draw) -> Step:
    A = d.matrix()
    B = d.matrix((d.shape(A)[1], None))
    more = sums_of_products(d, A)
    if d.chance(0.2):
        return Step("(A @ B).T", f"({A} @ {B}).T", same=f"{B}.T @ {A}.T", **more)
    return Step("A @ B", f"{A} @ {B}", **more)


@operation("spgemm", 4)
def _spgemm_methods(d: Draw) -> Step:
    A = d.matrix(formats=("csr",))
    B = d.matrix((d.shape(A)[1], None), formats=("csr",))
    options = [f"method={d.few(SPGEMM)!r}"]
    if d.chance(0.2):
        options.append("deterministic=False")
    if d.chance(0.3):
        return Step(
            "spgemm plan",
            f"sp.spgemm_plan({A}, {B}, {', '.join(options)})()",
            f"{A} @ {B}",
            **sums_of_products(d, A),
            same=f"{A} @ {B}",
        )
    return Step("spgemm", f"sp.spgemm({A}, {B}, {', '.join(options)})", f"{A} @ {B}", **sums_of_products(d, A))


@operation("a plan with new values", 2)
def _new_values(d: Draw) -> Step:
    A = d.matrix(formats=("csr",), kinds="iufc", where=lambda S: S.has_canonical_format)
    if not d.canonical(A):
        raise SkipError
    B = d.matrix((d.shape(A)[1], None), formats=("csr",), where=lambda S: S.has_canonical_format)
    if not d.canonical(B):
        raise SkipError
    data = d.array((d.values[A].nnz,), dtype=d.values[A].dtype.name, on_device=True)
    kind = d.one(["spgemm", "transpose"])
    if kind == "spgemm":
        return Step(
            "spgemm plan, new values",
            f"sp.spgemm_plan({A}, {B}, method={d.few(SPGEMM)!r})({data}, {B}.data)",
            f"with_values({A}, {data}) @ {B}",
            **sums_of_products(d, A),
        )
    return Step(
        "transpose plan, new values",
        f"sp.transpose_plan({A}, method={d.few(TRANSPOSE)!r})({data})",
        f"with_values({A}, {data}).T.tocsr()",
        signs=True,
    )


@operation("masked products", 2)
def _masked(d: Draw) -> Step:
    A = d.matrix(formats=("csr",))
    B = d.matrix((d.shape(A)[1], None), formats=("csr",))
    M = d.matrix((d.shape(A)[0], d.shape(B)[1]), formats=("csr",))
    complement, structural = d.chance(0.4), d.chance(0.6)
    options = f"mask={M}, complement={complement}, structural={structural}"
    return Step(
        "masked spgemm",
        f"sp.spgemm({A}, {B}, {options})",
        f"masked({A}, {B}, {M}, {complement}, {structural})",
        magnitude=f"{A} @ {B}",
        **sums_of_products(d, A),
    )


@operation("writes under masks")
def _written(d: Draw) -> Step:
    C = d.matrix(kinds="iuf", formats=("csr",))
    A = d.matrix((d.shape(C)[0], None), formats=("csr",), where=lambda S: S.dtype == d.values[C].dtype)
    B = d.matrix((d.shape(A)[1], d.shape(C)[1]), formats=("csr",), where=lambda S: S.dtype == d.values[C].dtype)
    M = d.matrix(d.shape(C), formats=("csr",))
    if len({d.values[matrix].dtype for matrix in (A, B, C)}) > 1 or not d.canonical(C) or max(d.shape(C)) > 300:
        raise SkipError
    how, accum, replace = f"{d.chance(0.4)}, {d.chance(0.6)}", d.one([None, "plus", "first", "second"]), d.chance(0.4)
    options = "mask={}, complement={}, structural={}".format(M, *how.split(", "))
    return Step(
        "masked spgemm, out",
        f"sp.spgemm({A}, {B}, out={C}.copy(), accum={accum!r}, replace={replace}, {options})",
        f"written({A}, {B}, {C}, allowed_positions({M}, {how}), {accum!r}, {replace})",
        magnitude=f"{A} @ {B} + {C}",
        grade="product",
        terms=d.shape(A)[1] + 1,
        apart=(C, M),
        stored=False,
    )


@operation("sddmm")
def _sddmm(d: Draw) -> Step:
    M = d.matrix(kinds="f", formats=("csr",), where=lambda S: S.has_canonical_format)
    if not d.canonical(M):
        raise SkipError
    (m, n), k, dtype = d.shape(M), int(d.one([1, 3, 8])), d.values[M].dtype.name
    X, Y = d.array((m, k), dtype=dtype), d.array((k, n), dtype=dtype)
    return Step(
        "sddmm",
        f"sp.sddmm({M}, {X}, {Y})",
        f"sampled({M}, {X}, {Y})",
        magnitude=f"{X} @ {Y}",
        grade="product",
        terms=k,
        stored=False,
        apart=(M,),
    )


TRANSPOSE = ("auto", "binned", "atomics")


@operation("transposition", 2)
def _transpose(d: Draw) -> Step:
    A = d.matrix()
    if d.values[A].format == "csr" and d.chance(0.7):
        return Step("transpose", f"sp.transpose({A}, method={d.few(TRANSPOSE)!r})", f"{A}.T.tocsr()", signs=d.canonical(A))
    return Step("A.T", f"{A}.T", signs=d.canonical(A))


@operation("queues that wait for each other")
def _queues(d: Draw) -> Step:
    A = d.matrix(formats=("csr",), where=lambda S: S.has_canonical_format)
    text = d.few(["B @ {x}", "{A} + B", "{A}.multiply(B)"])
    text = text.format(A=A, x=d.array((d.shape(A)[1],), on_device=True) if "x" in text else "")
    if not d.canonical(A):
        raise SkipError
    # B's values are not there yet when another queue is to read them: zeros are.
    zeros = f"sp.csr_array((0 * {A}.get()).astype({A}.dtype), queue=k)"
    ours = f"(lambda k: (lambda B, v: ({text}, later(B.data, v), {text})[-1])({zeros}, {A}.data.get()))"
    more = {"grade": "product", "terms": max(d.shape(A)), "stored": False}
    return Step("after another queue", f"{ours}(queue('ordered'))", text.replace("B", A), **more)


@operation("a matrix that dies before its product is there")
def _dies(d: Draw) -> Step:
    A = d.matrix(formats=("csr",))
    x = d.array((d.shape(A)[1],), on_device=True)
    # The product is x's queue's, and the matrix another one's.
    text = f"(lambda B: [B @ {x} for _ in range(3)][-1])(sp.csr_array({A}.get(), queue=queue('ordered')))"
    return Step("A @ x", text, f"{A} @ {x}", grade="product", terms=d.shape(A)[1])


# One entry at a time.
@operation("A + B", 3)
def _sum(d: Draw) -> Step:
    A = d.matrix()
    B = d.matrix(d.shape(A))
    text = d.one(["{A} + {B}", "{A} - {B}", "{A} + {B}", "2 * {A} - {B}"]).format(A=A, B=B)
    if "-" in text and d.values[A].dtype.kind == d.values[B].dtype.kind == "b":
        raise SkipError
    return Step("A + B", text, magnitude=f"2 * {A} + {B}", grade="sum", terms=4, stored=False)


@operation("by entry", 3)
def _by_entry(d: Draw) -> Step:
    words = d.chance(0.4)
    A = d.integers(WORDS) if words else d.matrix(kinds="biuf")
    B = A if d.chance(0.5 if words else 0.2) else d.integers(WORDS, d.shape(A)) if words else d.matrix(d.shape(A), kinds="biuf")
    text = d.one(["{A}.multiply({B})", "{A} * {B}", "{A}.maximum({B})", "{A}.minimum({B})"][: 2 if words else 4])
    text = text.format(A=A, B=B)
    product = "multiply" in text or "*" in text
    return Step(
        "A * B" if product else "maximum",
        text,
        grade="product" if product else "sum",
        magnitude=f"{A} * {B}" if product else f"{A} + {B}",
        terms=4,
        stored=all(d.values[matrix].dtype.kind in "iu" for matrix in (A, B)),
    )


@operation("comparison", 3)
def _compared(d: Draw) -> Step:
    wide = d.chance(0.5)
    A = d.integers(WIDE) if wide else d.matrix(kinds="biuf")
    other = d.one(["matrix", "scalar", "dense", *(["scalar"] * 4 if wide else [])])
    sign = d.one(["==", "!=", "<", ">", "<=", ">="])
    if other == "matrix":
        B = d.integers(WIDE, d.shape(A)) if wide else d.matrix(d.shape(A), kinds="biuf")
        return Step("A < B", f"{A} {sign} {B}", stored=False)
    if other == "dense":
        return Step("A < D", f"{A} {sign} {d.array(d.shape(A), kinds='biuf')}")
    beside = ["2**63", "2**63 - 1", "-2**63", "2**64 - 1", "2**53 + 1"]
    scalar = d.one(beside if wide else ["0", "1", "-1", "2", "2.5", "np.nan", *beside])
    if d.values[A].dtype.kind == "b" and "**" in scalar:
        raise SkipError  # an OverflowError of SciPy's
    if d.values[A].dtype.kind in "iu" and not wide and d.chance(0.4):
        # Beside the bounds of the dtype.
        info = np.iinfo(d.values[A].dtype)
        scalar = str(d.one([n for n in (info.max, info.max + 1, info.min, info.min - 1) if -(2**63) <= n < 2**64]))
    return Step("A < 1", f"{A} {sign} {scalar}", stored=False)


@operation("with a dense array", 3)
def _dense(d: Draw) -> Step:
    A = d.matrix()
    m, n = d.shape(A)
    shape = d.one([(m, n), (m, n), (1, n), (m, 1)])
    D = d.array(shape)
    if "b" in (d.values[A].dtype.kind, d.values[D].dtype.kind):
        raise SkipError
    if shape == (m, n) and d.chance(0.7):
        return Step(
            "A + D",
            d.one(["{A} + {D}", "{D} + {A}", "{A} - {D}", "{D} - {A}"]).format(A=A, D=D),
            magnitude=f"{A} + {D}",
            grade="sum",
            terms=4,
            signs=d.canonical(A),
        )
    return Step(
        "A * D",
        d.one(["{A}.multiply({D})", "{A} * {D}"]).format(A=A, D=D),
        magnitude=f"{A}.multiply({D})",
        grade="product",
        terms=4,
        stored=False,
    )


@operation("with a scalar", 2)
def _scalar(d: Draw) -> Step:
    A = d.matrix()
    scalar = d.scalar(d.values[A].dtype)
    text = d.one(["{A} * {k}", "{k} * {A}", "-{A}", "abs({A})", "{A} / {k}", "{A}.multiply({k})"]).format(A=A, k=scalar)
    if text.startswith("-") and d.values[A].dtype.kind == "b":
        raise SkipError
    grade = "round" if "/" in text or (text.startswith("abs") and d.values[A].dtype.kind == "c") else "product"
    return Step("A * 2", text, magnitude=f"{A} * 3", grade=grade, terms=4)


simple(
    "signs",
    "abs({A})",
    "{A}.sign()",
    "{A}.ceil()",
    "{A}.floor()",
    "{A}.rint()",
    "{A}.trunc()",
    "{A}.real",
    "{A}.conj()",
    kinds="f",
    signs=True,
)
simple(
    "functions",
    *(
        f"{{A}}.{name}()"
        for name in ("sqrt", "sin", "tan", "arctan", "sinh", "tanh", "arcsinh", "expm1", "log1p", "deg2rad", "rad2deg")
    ),
    kinds="fc",
    grade="round",
)
simple("powers", "{A}.power(2)", "{A}.power(3)", "{A} ** 2", grade="round", kinds="iuf")
simple("parts of complex values", "{A}.real", "{A}.imag", "{A}.conj()", "{A}.conj().T", kinds="c")


@operation("astype", 2)
def _astype(d: Draw) -> Step:
    A, to = d.matrix(), d.dtype()
    kind = d.values[A].dtype.kind
    if (kind == "c" and np.dtype(to).kind != "c") or (kind == "f" and np.dtype(to).kind in "iu"):
        raise SkipError
    return Step("astype", f"{A}.astype({to!r})", grade="round" if kind in "fc" else "move", tolerance=2)


# Reductions.
simple("trace", "{A}.trace()", grade="sum", weight=0.5)
simple("means", "{A}.mean()", "{A}.mean(axis=0)", "{A}.mean(axis=1)", kinds="iuf", grade="round", sizes=True, tolerance=600)
simple(
    "extremes",
    *(f"{{A}}.{name}({axis})" for name in ("max", "min", "nanmax", "nanmin") for axis in ("", "axis=0", "axis=1")),
    kinds="biuf",
    weight=3,
    narrow=True,
)
simple(
    "arguments of extremes",
    *(f"{{A}}.{name}(axis={axis})" for name in ("argmax", "argmin") for axis in (None, 0, 1)),
    kinds="iuf",
    narrow=True,
)
simple("counts", *(f"{{A}}.count_nonzero({axis})" for axis in ("", "axis=0", "axis=1")), "{A}.nnz")
simple("diagonals", "{A}.diagonal()", "{A}.diagonal(1)", "{A}.diagonal(-2)", grade="sum")
# From SciPy 1.18 on these norms are float64.
norms = ("linalg.norm({A})", "np.float32(linalg.norm({A}, 1))", "np.float32(linalg.norm({A}, np.inf))")
simple("norms", *norms, kinds="f", grade="round")


def inexact(A: Any, to: str) -> bool:
    """Return whether sums of integers in a dtype of floats depend on when they are converted, as SciPy's versions differ in."""
    return A.dtype.kind in "iu" and np.dtype(to).kind == "f" and float(np.abs(A.data.astype(float)).sum()) >= 2.0**53


@operation("sums", 1.5)
def _plain_sums(d: Draw) -> Step:
    A, axis = d.matrix(), d.few((None, 0, 1))
    oracle = f"sum_by_parts({A}, {axis})" if d.values[A].dtype.kind == "c" else ""
    return Step("sums", f"{A}.sum(axis={axis})", oracle, grade="sum", terms=max(d.shape(A)))


@operation("sums with a dtype")
def _sums(d: Draw) -> Step:
    A, to = d.matrix(kinds="biuf"), d.dtype("iuf")
    if (d.values[A].dtype.kind == "f" and np.dtype(to).kind in "iu") or inexact(d.values[A], to):
        raise SkipError
    axis = d.one(["None", "0", "1"])
    return Step("sum(dtype)", f"{A}.sum(axis={axis}, dtype={to!r})", grade="sum", terms=max(d.shape(A)))


@operation("sums into an array")
def _sums_into(d: Draw) -> Step:
    A = d.matrix(kinds="iu", formats=("csr",))
    to, out = d.one(["int8", "uint8", "uint16", "int64", "float64"]), d.one(["int64", "float64"])
    if inexact(d.values[A], to):
        raise SkipError
    return Step("sum(dtype, out)", f"{A}.sum(axis=1, dtype={to!r}, out=np.zeros({d.shape(A)[0]}, {out!r}))")


# Formats and structure.
simple(
    "conversion",
    "{A}.tocsr()",
    "{A}.tocsc()",
    "{A}.tocoo()",
    "{A}.toarray()",
    "{A}.copy()",
    "{A}.asformat('csr')",
    weight=2,
    grade="sum",
)
simple("triangles", *(f"sp.{name}({{A}}, {k}, format='csr')" for name in ("tril", "triu") for k in (0, 1, -1)), grade="sum")
# SciPy's sums of duplicates leave rows in another order than ours.
simple("positions", "{A}.tocsr().sorted_indices().nonzero()", "sp.find({A})", grade="sum")


@operation("blocks")
def _blocks(d: Draw) -> Step:
    A = d.matrix((d.size(), d.size()))
    m, n = d.shape(A)
    if m * n == 0 or m > 300:
        raise SkipError
    size = (d.one([k for k in (1, 2, 3, 5) if m % k == 0]), d.one([k for k in (1, 2, 4, 7) if n % k == 0]))
    if size == (1, 1) and not d.canonical(A):
        raise SkipError  # SciPy's keeps duplicates: they are multiplied one by one, where ours are added up first
    bsr = f"{A}.tobsr(blocksize={size})"
    if d.chance(0.5):
        return Step("bsr @ x", f"{bsr} @ {d.array((n,))}", grade="product", terms=n)
    return Step("bsr.tocsr", f"{bsr}.tocsr()", grade="sum", stored=False)


@operation("reshape")
def _reshape(d: Draw) -> Step:
    A = d.matrix()
    m, n = d.shape(A)
    shapes = [(n, m), (1, m * n), (m * n, 1)] + [(m * k, n // k) for k in (2, 5) if n % k == 0]
    return Step("reshape", f"{A}.reshape({d.one(shapes)})", grade="sum")


@operation("stacks", 2)
def _stacks(d: Draw) -> Step:
    A = d.matrix()
    m, n = d.shape(A)
    form = d.one(["None", "'csr'", "'csc'", "'coo'"])
    what = d.one(["hstack", "vstack", "block_diag", "block_array"])
    B = d.matrix((m, None) if what == "hstack" else (None, n) if what == "vstack" else (None, None))
    if what == "block_array":
        return Step(what, f"sp.block_array([[{A}, None], [None, {B}]], format={form})", grade="sum", stored=False)
    if what == "vstack" and d.chance(0.3):
        return Step(
            "split and stack",
            f"sp.vstack([{A}, {B}], format='csr')[{m}:]",
            f"sp.csr_array({B}.astype(np.result_type({A}, {B})))",
            grade="sum",
            stored=False,
        )
    return Step(what, f"sp.{what}([{A}, {B}], format={form})", grade="sum", stored=False)


@operation("kron")
def _kron(d: Draw) -> Step:
    A, B = d.matrix(), d.matrix()
    (m, n), (k, j) = d.shape(A), d.shape(B)
    if m * n * k * j > 4_000_000 or d.values[A].nnz * d.values[B].nnz > 50_000:
        raise SkipError
    # Whether duplicates are added up before they are multiplied, or after, matters to infinities alone.
    if not all(np.isfinite(d.values[matrix].data).all() for matrix in (A, B)) and not (d.canonical(A) and d.canonical(B)):
        raise SkipError
    text = f"sp.kron({A}, {B}, format='csr')"
    # Without entries SciPy's is float64.
    dtype = np.result_type(d.values[A], d.values[B]).name
    oracle = text if describe(prelude.DEVICE).fp64 else f"{text}.astype({dtype!r})"
    return Step("kron", text, oracle, grade="product", stored=False)


def positions(d: Draw, n: int) -> str:
    """Return the text of an index of n places."""
    if not n:
        raise SkipError
    a, b = sorted(int(integer) for integer in d.rng.integers(-n, n + 1, 2))
    which = d.one(["slice", "step", "list", "mask", "integer", "all", "permutation", "back"])
    if which in ("list", "permutation"):
        listed = d.rng.permutation(n) if which == "permutation" else d.rng.integers(-n, n, int(d.one([0, 1, 5, n])))
        return f"np.array({listed.tolist()}, {d.one(['int32', 'int64'])!r})"
    if which == "mask":
        return f"np.array({d.rng.integers(0, 2, n).tolist()}, bool)"
    return {
        "slice": f"{a}:{b}",
        "step": f"{a}::{d.one([2, 3, 7])}",
        "back": f"::{d.one([-1, -3])}",
        "integer": str(a if a < n else 0),
        "all": ":",
    }[which]


@operation("indexing", 3)
def _index(d: Draw) -> Step:
    A = d.matrix(formats=("csr", "csc"))
    m, n = d.shape(A)
    if max(m, n) > 300:
        raise SkipError
    rows, cols = positions(d, m), positions(d, n) if d.chance(0.6) else ":"
    if "[" in rows and "[" in cols:
        if rows.endswith("bool)") or cols.endswith("bool)"):
            raise SkipError
        return Step("A[p][:, q]", f"{A}[{rows}][:, {cols}]", grade="sum", stored=False)
    # SciPy combines a list with some slices alone.
    apart = f"{A}[{rows}][:, {cols}]" if "[" in rows else f"{A}[:, {cols}][{rows}]" if "[" in cols else ""
    return Step(
        "A[i, j]", f"{A}[{rows}, {cols}]" if cols != ":" or d.chance(0.5) else f"{A}[{rows}]", apart, grade="sum", stored=False
    )


@operation("places", 1)
def _places(d: Draw) -> Step:
    A = d.matrix(formats=("csr", "csc"))
    m, n = d.shape(A)
    if not m * n:
        raise SkipError
    count = int(d.one([0, 1, 7, 50]))
    rows, cols = d.rng.integers(-m, m, count).tolist(), d.rng.integers(0, n, count).tolist()
    return Step("A[rows, cols]", f"{A}[np.array({rows}, int), np.array({cols}, int)]", grade="sum")


@operation("permutations beside products")
def _permuted(d: Draw) -> Step:
    A = d.matrix(formats=("csr",))
    m, n = d.shape(A)
    if max(m, n) > 300 or not m * n or d.values[A].dtype.kind == "b":
        raise SkipError
    p, c = d.rng.permutation(m).tolist(), d.rng.permutation(n).tolist()
    one = f"np.ones({{}}, {d.values[A].dtype.name!r})"
    P = f"sp.csr_array(({one.format(m)}, (np.arange({m}), np.array({p}))), shape=({m}, {m}), queue=q)"
    Q = f"sp.csr_array(({one.format(n)}, (np.array({c}), np.arange({n}))), shape=({n}, {n}), queue=q)"
    return Step("P A Q", f"{A}[np.array({p})][:, np.array({c})]", same=f"{P} @ {A} @ {Q}", grade="sum", stored=False)


@operation("assignment", 3)
def _assign(d: Draw) -> Step:
    A = d.matrix(formats=("csr", "csc"))
    m, n = d.shape(A)
    if max(m, n) > 300 or not m * n:
        raise SkipError
    rows, cols = positions(d, m), positions(d, n)
    if "[" in rows and "[" in cols:
        rows = ":"
    if "array" in rows + cols and "bool" not in rows + cols:
        # Places that are named twice: the last counts here.
        rows, cols = rows.replace("-", ""), cols.replace("-", "")
    value = d.scalar(d.values[A].dtype)
    return Step(
        "A[i, j] = x", f"assigned({A}, lambda B: B.__setitem__({slices(rows, cols)}, {value}))", grade="sum", stored=False
    )


def slices(*texts: str) -> str:
    """Return the text of an index by which ``__setitem__`` may be called."""
    return f"np.s_[{', '.join(texts)}]"


@operation("changes in place", 2)
def _in_place(d: Draw) -> Step:
    A = d.matrix(formats=("csr", "csc"))
    kind = d.values[A].dtype.kind
    change = d.one(
        [
            "B.sum_duplicates()",
            "B.sort_indices()",
            "B.eliminate_zeros()",
            "B.setdiag(1)",
            "B.setdiag(2, 1)",
            "B.prune()",
            "B.__imul__(2)" if kind in "iufc" else "B.sort_indices()",
            "B.resize(({m}, {n}))",
        ]
    )
    if change == "B.eliminate_zeros()" and not d.canonical(A):
        raise SkipError
    change = change.format(m=d.size(), n=d.size())
    return Step(change.partition("(")[0], f"assigned({A}, lambda B: {change})", grade="sum", stored=False)


# Relations: what is the same bit for bit, whatever is rounded.
def product_of(d: Draw, kinds: str) -> tuple[str, str, str]:
    """Return a CSR matrix, what it is multiplied by, both of sizes that nothing grows too large with, and the product's text."""
    A = d.matrix(kinds=kinds, formats=("csr",))
    n = d.shape(A)[1]
    B = d.array((n,) if d.chance(0.5) else (n, 3), kinds=kinds) if d.chance(0.6) else d.matrix((n, None), kinds, formats=("csr",))
    for matrix in (A, B):
        sizes = np.abs(d.values[matrix].data if hasattr(d.values[matrix], "tocsr") else d.values[matrix])
        if not ((sizes == 0) | ((sizes > 2.0**-12) & (sizes < 2.0**20))).all() or max(d.shape(matrix)) > 300:
            raise SkipError
    return A, B, d.one(["{A} @ {B}", "{A} @ {B}", "({A}.T @ {A}) @ {B}"])


@operation("powers of two")
def _powers_of_two(d: Draw) -> Step:
    A, B, text = product_of(d, "fc")
    a, b = (f"{d.values[matrix].dtype.type(2.0 ** int(d.rng.integers(-9, 10)))!r}" for matrix in (A, B))
    squared = f" * {a}" if ".T" in text else ""
    scaled = text.format(A=f"({A} * {a})", B=f"({B} * {b})")
    return Step("powers of two", f"alike({scaled}, ({text.format(A=A, B=B)}) * {a}{squared} * {b})", "np.array(True)")


@operation("one queue beside another")
def _beside(d: Draw) -> Step:
    A, B, text = product_of(d, "biufc")
    there = text.format(A=f"on(q2, {A})", B=f"on(q2, {B})")
    return Step("one queue beside another", f"alike({text.format(A=f'on(q, {A})', B=f'on(q, {B})')}, {there})", "np.array(True)")


@operation("memory limits")
def _limits(d: Draw) -> Step:
    A = d.matrix(formats=("csr",))
    B, n = d.matrix((d.shape(A)[1], None), formats=("csr",)), d.shape(A)[1]
    text = f"limited(lambda limit: sp.spgemm({A}, {B}, memory_limit=limit, method={d.few(SPGEMM)!r}), {d.one([1, 64, 4096])})"
    return Step("memory limits", text, f"{A} @ {B}", grade="product", terms=n, stored=False)


@operation("residues", 0.1)
def _residues(d: Draw) -> Step:
    dtype = d.one([dtype for dtype in d.block.dtypes if dtype in ("int32", "int64", "float32", "float64")])
    made = f"{int(d.rng.integers(1 << 30))}, {d.one([200, 1500])}, {dtype!r}, {d.few(SPGEMM)!r}"
    return Step("residues", f"residues(q, {made})", "np.array(True)")


# Systems and graphs.
def well_posed(d: Draw, n: int, dtype: str) -> str:
    """Return a new diagonally dominant matrix."""
    row, col = d.structure(n, n)
    off = row != col
    return _dominant(d, row[off], col[off], n, dtype)


def _dominant(d: Draw, row: np.ndarray, col: np.ndarray, n: int, dtype: str) -> str:
    """Return a new diagonally dominant matrix with given entries beside its diagonal."""
    from tests.programs.program import Input

    values = d.rng.integers(-2, 3, row.size).astype(float)
    total = np.bincount(row, np.abs(values), n) + np.bincount(col, np.abs(values), n) + 1
    arrays = (
        np.concatenate((row, np.arange(n))),
        np.concatenate((col, np.arange(n))),
        np.concatenate((values, total)).astype(dtype),
    )
    if not d.has("unsorted"):
        order = np.lexsort(arrays[1::-1])
        arrays = arrays[0][order], arrays[1][order], arrays[2][order]
    return d.add(Input(d.one(["csr", "csc"]), "parts", (n, n), arrays, d.block.index))


def _stencil(d: Draw, dtype: str) -> str:
    """Return a new diagonally dominant matrix of a stencil on a grid, of which points may be missing."""
    extents = np.array([d.one([1, 2, 9]), d.one([3, 7, 20]), d.one([5, 8, 30])])
    n, most, missing = int(extents.prod()), d.one([1, 3]), d.one([0, 0, 0.3])
    offsets = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij")).reshape(3, 1, -1)
    offsets = offsets[..., (np.abs(offsets).sum(axis=(0, 1)) <= most) & offsets.any(axis=(0, 1))]
    others = np.stack(np.unravel_index(np.arange(n), extents))[..., None] + offsets
    there = (others >= 0) & (others < extents[:, None, None])
    row, k = np.nonzero(there.all(axis=0) & (d.rng.random(there.shape[1:]) >= missing))
    return _dominant(d, row, np.ravel_multi_index(tuple(others[:, row, k]), tuple(extents)), n, dtype)


@operation("triangular systems", 3)
def _triangular(d: Draw) -> Step:
    is_stencil = d.chance(0.3)
    A = _stencil(d, d.dtype("fc")) if is_stencil else well_posed(d, max(d.size(), 1), d.dtype("fc"))
    n = d.values[A].shape[0]
    if not d.values[A].dtype.kind == "f" and d.chance(0.5):
        raise SkipError
    b = d.array((n,) if d.chance(0.6) else (n, d.one([3, 17])), kinds="ifc", small=True)
    lower, unit = d.chance(0.5), d.chance(0.2)
    form = d.values[A].format
    T = f"sp.{'tril' if lower else 'triu'}({A}, format={form!r})"
    # What is on the other side of the diagonal is passed over, and A's entries may be in any order.
    given = A if d.chance(0.5) else T
    if unit:
        T, given = f"{T} / 50", f"{given} / 50"
    if d.chance(0.5):
        text = f"linalg.spsolve_triangular({given}, {b}, lower={lower}, unit_diagonal={unit})"
        return Step("spsolve_triangular", text, f"triangular({T}, {b}, {unit})", grade="round", tolerance=3000)
    waiting = ["sync-free"] if describe(prelude.DEVICE).forward_progress else []
    transposed, method = d.chance(0.5), d.one(["auto", "serial", "levels", *waiting])
    options = f"lower={lower}, unit_diagonal={unit}, transposed={transposed}, method={method!r}"
    # The plan is of other values, where new ones can be given.
    other, data = (f"({given} * 2)", f", ({given}).data") if d.chance(0.5) else (given, "")
    plan, call = f"linalg.triangular_plan({other}, {options})", f"plan({b}{data})"
    # A later call with a device array replays commands.
    calls = d.one([call, f"({call}, {call})[1]", f"({call}, plan.check(), {call}, {call})[3]"])
    text = f"(lambda plan: {calls})({plan})"
    return Step("triangular_plan", text, f"triangular({T}{'.T' * transposed}, {b}, {unit})", grade="round", tolerance=3000)


def _draw_preconditioner(d: Draw, solver: str, A: str) -> str:
    """Return the call of a preconditioner of a matrix, with options of incomplete factors."""
    if d.chance(0.5):
        return f"linalg.{'jacobi' if solver == 'cg' else d.one(['jacobi', 'isai'])}({A})"
    options = f"{d.one([None, 2])}, ordering={d.one(['natural', 'multicolour'])!r}, solve={d.one(['exact', 'isai'])!r}"
    return f"linalg.{'ic0' if solver == 'cg' else 'ilu0'}({A}, {options})"


@operation("solvers", 1.5)
def _solver(d: Draw) -> Step:
    n = max(d.size(), 1)
    if n > 130:
        raise SkipError
    dtype = d.dtype("f")
    A = well_posed(d, n, dtype)
    b = d.array((n,), dtype=dtype, small=True)
    name = d.one(["gmres", "minres", "minres", "spsolve", "cg", "bicgstab"])
    matrix = f"({A} + {A}.T)" if name in ("cg", "minres") else A
    scale = d.one(["", " * 2.0**60", " * 2.0**-60"]) if name != "spsolve" and d.has("scales") else ""
    if scale:
        matrix, b = f"({matrix}{scale})", f"({b}{scale})"
    if name == "spsolve":
        return Step(name, f"linalg.spsolve({matrix}.tocsr(), {b})", f"solved({matrix}, {b})", grade="round", tolerance=1e4)
    rtol = 1e-5 if dtype == "float32" else 1e-10
    more = "" if d.chance(0.4) or scale else f", M={_draw_preconditioner(d, name, matrix)}"
    if name == "minres":
        more = ""
    return Step(
        name,
        f"linalg.{name}({matrix}, {b}, rtol={rtol}{more})[0]",
        f"solved({matrix}, {b})",
        grade="round",
        tolerance=3000 * rtol / np.finfo(dtype).eps,
    )


@operation("graphs", 2)
def _graphs(d: Draw) -> Step:
    n = max(d.size(), 1)
    A = d.matrix((n, n), kinds="biuf", formats=("csr",))
    data = d.values[A].data
    if not np.isfinite(data).all() or np.abs(data.astype(float)).max(initial=0) > 1e30 or (np.abs(data) < 0).any():
        raise SkipError
    symmetric = f"(lambda B: B + B.T)(sp.csr_array(abs({A}).astype('float32')) != 0).astype('float32')"
    what = d.one(["components", "bfs", "triangles", "triangle_count", "k_truss", "betweenness", "pagerank"])
    if what == "k_truss":
        return Step("k_truss", f"graph.k_truss({symmetric}, {(k := d.one([2, 3, 4]))})", f"truss({symmetric}, {k})")
    if what == "betweenness":
        if n > 65:
            raise SkipError
        text = f"graph.betweenness_centrality({A}, batch={d.one([1, 7, 64])})"
        dtype, tolerance = ("float64", 1e5) if describe(prelude.DEVICE).fp64 else ("float32", 1e3)
        return Step(what, text, f"betweenness({A}).astype({dtype!r})", grade="round", tolerance=tolerance)
    if what == "triangle_count":
        return Step(what, f"graph.triangle_count({symmetric})", f"int(triangles({symmetric}).sum()) // 3")
    if what == "components":
        return Step("connected_components", f"graph.connected_components({symmetric})", f"components({symmetric})")
    if what == "bfs":
        source = int(d.rng.integers(n))
        return Step("bfs", f"graph.bfs({A}, {source})[0]", f"levels({A}, {source})")
    if what == "pagerank":
        if n > 130:
            raise SkipError
        text = f"graph.pagerank(abs({A}).astype('float32'), tol=1e-8)"
        return Step(what, text, f"ranks({A})", grade="round", tolerance=20_000)
    return Step("triangles", f"graph.triangles({symmetric})", f"triangles({symmetric})")


# Primitives.
@operation("scans", 2)
def _scans(d: Draw) -> Step:
    x = d.array((int(d.one([0, 1, 5, 100, 1000, 5000])),), kinds="iuf", fresh=0.6, on_device=True)
    name = d.one(["exclusive_scan", "inclusive_scan"])
    return Step(
        name, f"primitives.{name}({x})", f"{name}({x})", magnitude=f"np.sum({x})", grade="sum", terms=max(d.values[x].size, 1)
    )


@operation("sorts")
def _sorts(d: Draw) -> Step:
    n = int(d.one([0, 1, 50, 700, 5000]))
    dtype = d.one([dtype for dtype in d.block.dtypes if dtype in ("int32", "uint32", "int64", "uint64")] or ["uint32"])
    keys = d.array((n,), dtype=dtype, values=d.rng.integers(0, int(d.one([2, 50, 2**30])), n), on_device=True)
    if d.chance(0.5):
        return Step("radix_sort", f"primitives.radix_sort({keys})", f"np.sort({keys}, kind='stable')")
    values = d.array((n,), dtype="uint32", values=np.arange(n), on_device=True)
    return Step("radix_sort of pairs", f"primitives.radix_sort({keys}, {values})", f"sorted_pairs({keys}, {values})")


@operation("runs of keys")
def _runs(d: Draw) -> Step:
    n = int(d.one([0, 1, 50, 700, 5000]))
    keys = d.array((n,), dtype=d.block.index, values=np.repeat(d.rng.integers(-3, 9, n), d.one([1, 7, 90]))[:n], on_device=True)
    x = d.array((n,), dtype=d.dtype("iuf"), on_device=True)
    return Step(
        "reduce_by_key",
        f"primitives.reduce_by_key({keys}, {x})",
        f"reduce_by_key({keys}, {x})",
        magnitude=f"np.sum({x})",
        grade="sum",
        terms=max(n, 1),
    )


@operation("merges")
def _merges(d: Draw) -> Step:
    n, count = int(d.one([1, 50, 700, 5000])), int(d.one([1, 2, 3, 40]))
    dtype = d.one([dtype for dtype in d.block.dtypes if dtype in ("int32", "uint32", "int64", "uint64")] or ["uint32"])
    cuts = [0, *np.sort(d.rng.integers(0, n + 1, count - 1)).tolist(), n]
    keys = np.concatenate([np.sort(d.rng.integers(0, 50, b - a)) for a, b in itertools.pairwise(cuts)])
    middle = int(d.rng.integers(0, count + 1))
    of, segments = (
        d.array((len(cuts_of_part),), dtype=d.block.index, values=cuts_of_part, on_device=True)
        for cuts_of_part in ([0, middle, count], [0, cuts[middle], n])
    )
    parts = d.array((len(cuts),), dtype=d.block.index, values=cuts, on_device=True)
    x = d.array((n,), dtype=dtype, values=keys, on_device=True)
    algorithm = d.few(("balanced", "simple", "serial"))
    return Step(
        "segmented_merge",
        f"primitives.segmented_merge({of}, {parts}, {x}, algorithm={algorithm!r})",
        f"segmented_sort({segments}, {x})",
    )


@operation("segments", 2)
def _segments(d: Draw) -> Step:
    n = int(d.one([1, 50, 700, 5000]))
    x = d.array((n,), dtype=d.dtype("iuf"), on_device=True)
    cuts = np.sort(d.rng.integers(0, n + 1, int(d.one([0, 1, 3, 40]))))
    pointers = d.array((cuts.size + 2,), dtype=d.block.index, values=[0, *cuts.tolist(), n], on_device=True)
    name = d.one(["segmented_sum", "segmented_scan", "segmented_sort"])
    if name == "segmented_sort":
        if d.values[x].dtype.itemsize < 4 or d.values[x].dtype.kind == "f":
            raise SkipError
        return Step(name, f"primitives.{name}({pointers}, {x})", f"{name}({pointers}, {x})", stored=False)
    return Step(
        name, f"primitives.{name}({pointers}, {x})", f"{name}({pointers}, {x})", magnitude=f"np.sum({x})", grade="sum", terms=n
    )


@operation("ranks", 0.5)
def _ranks(d: Draw) -> Step:
    A = d.matrix(formats=("csr",))
    m, n = d.shape(A)
    # Ranks are threads, which queues without order do not bear on Intel's runtime: quirk 14.
    if max(m, n) > 300 or "unordered" in d.block.queues:
        raise SkipError
    size = int(d.one([1, 2, 3, 5]))
    queues = f"[{', '.join((['q', 'q2'] * size)[:size])}]"
    cuts = [0, *np.sort(d.rng.integers(0, m + 1, size - 1)).tolist(), m]
    what, own = d.one(["A @ B", "A @ x", "A.T @ x", "A + B", "A.T", "diagonal"]), f"team.csr_array({A}.get(), division={cuts})"
    if what == "A @ B":
        B = d.matrix((n, None), formats=("csr",))
        if max(d.shape(B)) > 300:
            raise SkipError
        text = f"sp.csr_array(by_ranks({queues}, lambda team: multiply_again(team, {A}.get(), {B}.get())), queue=q)"
        return Step("a team's A @ B", text, f"{A} @ {B}", **sums_of_products(d, A))
    if what in ("A @ x", "A.T @ x"):
        columns, view = (n, "") if what == "A @ x" else (m, ".T")
        x = d.array((columns,) if d.chance(0.5) else (columns, d.one([1, 3])), on_device=False)
        text = f"by_ranks({queues}, lambda team: {own}{view} @ {x})"
        return Step("a team's A @ x", text, f"{A}{view}.tocsr() @ {x}", grade="product", terms=columns)
    if what == "A + B":
        B, sign = d.matrix((m, n), formats=("csr",)), d.one("+-")
        if sign == "-" and d.values[A].dtype.kind == d.values[B].dtype.kind == "b":
            raise SkipError
        text = f"{own} {sign} team.csr_array({B}.get(), division={cuts})"
        text = f"sp.csr_array(by_ranks({queues}, lambda team: {text}), queue=q)"
        return Step("a team's A + B", text, f"{A} {sign} {B}", magnitude=f"{A} + {B}", grade="sum", terms=4, stored=False)
    if what == "A.T":
        text = f"sp.csr_array(by_ranks({queues}, lambda team: {own}.T.tocsr()), queue=q)"
        return Step("a team's A.T", text, f"{A}.T.tocsr()")
    k = int(d.one([0, 1, -2, 400]))
    return Step(
        "a team's diagonal", f"by_ranks({queues}, lambda team: {own}.diagonal({k}))", f"{A}.diagonal({k})", grade="sum", terms=4
    )


def systems_over_ranks(d: Draw, solve: str, *, laplacian: bool) -> Step:
    """Return a step that solves a Hermitian system over ranks, by a function of the text ``solve``, and judges the residual."""
    if "unordered" in d.block.queues:
        raise SkipError  # quirk 14
    n, dtype, size = d.size(), d.dtype("fc"), int(d.one([1, 2, 3, 4, 7]))
    if n > 300:
        raise SkipError
    A = well_posed(d, n, dtype)
    b = d.array((n,) if d.chance(0.7) else (n, d.one([1, 3])), kinds="iufc", small=True, on_device=False)
    # Shares of any length: some ranks have no rows.
    cuts = [0, *np.sort(d.rng.integers(0, n + 1, size - 1)).tolist(), n]
    S = f"hermitian({A}, {d.one([1.0, 0.55])}{', laplacian=True' * laplacian})"
    if d.has("scales") and "x0=" not in solve.replace("x0=None", "") and d.chance(0.3):
        S, b = (f"{text} * 2.0**{d.one([-60, 60])}" for text in (S, b))  # a guess would be far too large
    rtol = d.one([1e-2, 1e-5 if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else 1e-10])
    form = d.one(["whole", "strided", "vector", "device", "another queue"])
    queues = f"[{', '.join((['q', 'q2'] * size)[:size])}]"
    text = f"solved_over_ranks({queues}, {cuts}, {S}, {b}, {form!r}, {rtol}, {solve})"
    return Step("cg over ranks" if not laplacian else "multigrid over ranks", text, "np.array(True)")


@operation("cg over ranks", 0.6)
def _cg_over_ranks(d: Draw) -> Step:
    name = d.one(["cg", "cg", "cg", "minres", "bicgstab", "gmres"])
    by_blocks = ["distributed.by_blocks(A, linalg.jacobi)", "linalg.jacobi(A)"]
    M = d.one(["None", *by_blocks, "lambda r: r * 0.5", "inverse_diagonal(A)"]) if name != "minres" else "None"
    x0 = d.one(["None", "None", "0.5 * b", "'Mb'" if name != "minres" else "b"])
    return systems_over_ranks(d, f"lambda A, b, rtol: linalg.{name}(A, b, x0={x0}, rtol=rtol, M={M})", laplacian=False)


@operation("multigrid over ranks", 0.6)
def _multigrid_over_ranks(d: Draw) -> Step:
    smoother = d.one(["'jacobi'", "('chebyshev', {'degree': 2})"])
    strength = d.one(["'symmetric'", "('symmetric', {'theta': 0.1})"])
    options = f"max_coarse={d.one([1, 3, 10, None])}, presmoother={smoother}, postsmoother={smoother}, strength={strength}"
    solver = "amg.smoothed_aggregation_solver"
    ml = d.one([f"{solver}(A, {options})", f"refreshed({solver}(2 * A, {options}), A)"])
    if d.chance(0.5):
        solve = f"linalg.cg(A, b, rtol=rtol, M={ml}.aspreconditioner({d.one(['V', 'W', 'F'])!r}))"
    else:
        solve = f"{ml}.solve(b, tol=rtol, accel='cg', maxiter=300, return_info=True)"
    return systems_over_ranks(d, f"lambda A, b, rtol: {solve}", laplacian=True)


@operation("mistakes", 0.7)
def _mistakes(d: Draw) -> Step:
    A = d.matrix(formats=("csr", "csc"))
    m, n = d.shape(A)
    text = d.one(
        [
            "{A} @ np.ones({n} + 1, bool)",
            "{A}[{m}]",
            "{A}[:, {n}]",
            "{A}[-{m} - 1]",
            "{A} + eye(q, {m}, {n} + 1)",
            "{A}.reshape(({m} + 1, {n} + 2))",
            "{A} @ eye(q, {n} + 1, 2)",
            "{A}.sum(axis=3)",
            "{A}.astype('no dtype')",
            "sp.hstack([{A}, eye(q, {m} + 1, 2)])",
            "{A}.multiply(np.ones(({m} + 2, {n} + 3), bool))",
            "{A}.asformat('abc')",
            "{A} + 1",
            "{A}.setdiag([1, 2], {n} + {m})",
        ]
    )
    if m == 0 and "hstack" in text:
        raise SkipError  # SciPy takes no rows for rows that are not known yet
    return Step("a mistake", text.format(A=A, m=m, n=n))
