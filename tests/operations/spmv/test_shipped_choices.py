"""What the generic profiles choose, which tuning found."""

from __future__ import annotations

import pytest
from test_choose import CPU, GPU

from clsparse_py._operations.spmv.choose import choose
from clsparse_py._operations.spmv.features import Features


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gpus_share_out_short_rows_and_stream_entries_of_others(dtype: str) -> None:
    def choose_kernel(n_rows: int, nnz: int, longest: int) -> str:
        # All rows but one are as long as the mean, which lies in a class of the histogram by powers of two.
        classes = (*(0 for _ in range((nnz // n_rows - 1).bit_length() + 1)), n_rows)
        decision = choose(Features(n_rows, n_rows, nnz, 0, longest, 1.0, classes), GPU, "auto", None, dtype)
        assert decision.scheme.name == "single"
        assert decision.rule.startswith("profile generic-gpu: single always; ")
        assert decision.kernels[0][0].label in decision.rule
        return decision.kernels[0][0].name

    # A few entries in every row, in a cache and not.
    assert choose_kernel(10**5, 3 * 10**5, 4) == "serial"
    assert choose_kernel(10**6, 6 * 10**6, 7) == "adaptive"
    assert choose_kernel(10**6, 2 * 10**7, 3000) == "adaptive"


def test_values_of_other_types_choose_as_real_ones_of_their_size() -> None:
    features = Features(1000, 1000, 7000, 0, 16, 1.0, ())
    by_dtype = {dtype: choose(features, GPU, "auto", None, dtype).kernels for dtype in ("int8", "int32", "float32")}
    assert len(set(by_dtype.values())) == 1
    assert choose(features, GPU, "auto", None, "complex64").kernels == choose(features, GPU, "auto", None, "float64").kernels


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cpus_cut_large_and_uneven_matrices_into_chunks_and_share_out_the_rows_of_others(dtype: str) -> None:
    def choose_kernel(n_rows: int, nnz: int, longest: int) -> str:
        decision = choose(Features(n_rows, n_rows, nnz, 0, longest, 1.0, ()), CPU, "auto", None, dtype)
        assert decision.scheme.name == "single"
        return decision.kernels[0][0].name

    assert choose_kernel(10**6, 5 * 10**6, 500) == "chunked"
    assert choose_kernel(10**6, 5 * 10**6, 7) == "chunked"
    assert choose_kernel(1000, 5000, 7) == "serial"
    assert choose_kernel(1000, 50_000, 900) == "chunked"


def test_bins_take_as_many_work_items_to_a_row_as_keep_some_entries_for_each() -> None:
    (fine,) = choose(Features(9, 9, 9, 1, 1, 0.0, ()), GPU, "fine", None).kernels
    assert [choice.lanes for choice in fine[:100]] == [1] * 4 + [2] * 4 + [4] * 8 + [8] * 16 + [16] * 32 + [32] * 36
    assert {choice.label.split("/", 1)[1] for choice in fine[:100]} == {"256/2"}
    (coarse,) = choose(Features(9, 9, 9, 1, 1, 0.0, ()), GPU, "coarse-10", None).kernels
    assert (fine[100].label, coarse[100].label) == ("vector_long/256/4", "subvector64/256/2")
    (on_cpu,) = choose(Features(900, 900, 9000, 1, 600, 0.0, ()), CPU, "coarse-10", None).kernels
    assert [choice.label for choice in on_cpu] == ["serial/256/2"] * 100 + ["subvector4/256/2"]
