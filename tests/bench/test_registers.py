"""What a compiler's log says that a kernel takes."""

from __future__ import annotations

from bench import registers

_LOG = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'sort' for 'sm_90'
ptxas info    : Function properties for sort
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes stack, 2048 bytes smem, 400 bytes cmem[0]
"""


def test_numbers_of_a_log() -> None:
    result = registers.usage(_LOG)
    assert result == {"registers": 40, "stack": 16, "spill_stores": 8, "spill_loads": 12, "local_memory": 2048, "warnings": []}


def test_warnings_of_a_log() -> None:
    result = registers.usage(_LOG + "<kernel>:3:5: warning: unused variable 'a'\n")
    assert result["warnings"] == ["<kernel>:3:5: warning: unused variable 'a'"]


def test_what_is_said_of_every_kernel_is_no_warning() -> None:
    said = "(): Warning: Function sort is a kernel, so overriding noinline attribute. The function may be inlined when called.\n"
    assert not registers.usage(said + _LOG)["warnings"]


def test_a_log_that_says_nothing() -> None:
    assert not any(registers.usage("").values())


def test_the_table_has_a_row_for_each_kernel() -> None:
    sheet = registers.sheet({"b": registers.usage(_LOG), "a": registers.usage("")})
    assert [row[0] for row in sheet.rows] == ["a", "b"]
    assert all(len(row) == len(sheet.header) for row in sheet.rows)
