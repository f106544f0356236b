"""Summaries of samples: at most five numbers for each contestant of each problem and each way of timing."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from typing import Any

Document = dict[str, Any]

# Significant digits of medians under a millisecond, which tables show; longer ones are kept to the nanosecond.
_OF_MEDIANS = 7
# Significant digits of the other numbers.
_OF_OTHERS = 3
# Characters of JSON that stay in one line.
_LINE = 120
# What a summary keeps of an entry beside its operation, dtype and contestants.
_OF_PROBLEMS = ("input", "shape", "nnz", "products", "entries", "sizes", "bytes", "floor")


def microseconds(samples: Sequence[float]) -> list[float]:
    """Return least, quartiles and greatest of seconds, in microseconds; of fewer than five, these in ascending order.

    Both have the median and the quartiles of the samples.
    """
    ordered = sorted(1e6 * sample for sample in samples)
    if len(ordered) > 5:
        ordered = [ordered[0], *statistics.quantiles(ordered, n=4, method="inclusive"), ordered[-1]]
    first, last = (len(ordered) - 1) // 2, len(ordered) // 2
    middle = [_exact(number) for number in ordered[first : last + 1]]
    # The median stays in the middle, however the others are rounded.
    below = [min(_round(number, _OF_OTHERS), middle[0]) for number in ordered[:first]]
    above = [max(_round(number, _OF_OTHERS), middle[-1]) for number in ordered[last + 1 :]]
    return [*below, *middle, *above]


def _exact(number: float) -> float:
    return round(number, 3) if number >= 1000 else _round(number, _OF_MEDIANS)


def summarise(document: Document) -> Document:
    """Return the summary of a results document, by operation and dtype."""
    head = {name: part for name, part in document.items() if name != "entries"}
    copies = [_of_copy(copy) for copy in document["copies"]]
    return {**head, "copies": copies, "operations": tables(document["entries"], _OF_PROBLEMS)}


def tables(entries: Sequence[Document], kept: Sequence[str]) -> list[Document]:
    """Return a table of each operation and dtype, with these parts of entries beside the times of contestants."""
    operations: dict[tuple[str, str], list[Document]] = {}
    for entry in entries:
        operations.setdefault((entry["operation"], entry["dtype"]), []).append(entry)
    return [_table(*key, of_key, kept) for key, of_key in operations.items()]


def _of_copy(copy: Document) -> Document:
    count = copy.get("count", len(copy["samples"]))
    return {"how": copy["how"], "bytes": copy["bytes"], "count": count, "microseconds": microseconds(copy["samples"])}


def _table(operation: str, dtype: str, entries: Sequence[Document], kept: Sequence[str]) -> Document:
    records = [record for entry in entries for record in entry["contestants"]]
    ways = list(dict.fromkeys(way for record in records for way in record.get("samples", ())))
    names = list(dict.fromkeys(record["name"] for record in records))
    problems = []
    for entry in entries:
        problem = {name: entry[name] for name in kept if name in entry}
        if "floor" in problem:
            problem["floor"] = _round(entry["floor"], _OF_MEDIANS)
        if "resident_copy" in entry:
            problem["resident_copy"] = _of_copy(entry["resident_copy"])
        of_names = {record["name"]: _of_record(record, ways) for record in entry["contestants"]}
        problems.append({**problem, "times": [of_names.get(name) for name in names]})
    return {"operation": operation, "dtype": dtype, "contestants": names, "ways": ways, "problems": problems}


def _of_record(record: Document, ways: Sequence[str]) -> list[Any] | dict[str, str]:
    """Return a contestant's count of samples, and microseconds for each way up to the last that it has; or why it has none."""
    if "samples" not in record:
        return {why: record[why] for why in ("failure", "declined") if why in record}
    samples = record["samples"]
    numbers = [microseconds(samples.get(way, [])) for way in ways]
    while numbers and not numbers[-1]:
        numbers.pop()
    return [record.get("count", len(samples["back_to_back"])), *numbers]


def expand(summary: Document) -> Document:
    """Return a summary as a results document: samples are the numbers that it keeps, and ``count`` is how many there were."""
    head = {name: part for name, part in summary.items() if name != "operations"}
    results = [_entry(table, problem) for table in summary["operations"] for problem in table["problems"]]
    return {**head, "copies": [_copy(copy) for copy in summary["copies"]], "entries": results}


def _copy(copy: Document) -> Document:
    return {"how": copy["how"], "bytes": copy["bytes"], "count": copy["count"], "samples": _seconds(copy["microseconds"])}


def _entry(table: Document, problem: Document) -> Document:
    """Return a problem of a table as an entry."""
    entry = {name: part for name, part in problem.items() if name != "times"}
    if "resident_copy" in problem:
        entry["resident_copy"] = _copy(problem["resident_copy"])
    rows = zip(table["contestants"], problem["times"], strict=True)
    records = [{"name": name, **_record(row, table["ways"])} for name, row in rows if row is not None]
    return {**entry, "operation": table["operation"], "dtype": table["dtype"], "contestants": records}


def _record(row: list[Any] | dict[str, str], ways: Sequence[str]) -> Document:
    if isinstance(row, dict):
        return row
    count, *numbers = row
    return {"count": count, "samples": {way: _seconds(number) for way, number in zip(ways, numbers, strict=False) if number}}


def _seconds(numbers: Sequence[float]) -> list[float]:
    return [number / 1e6 for number in numbers]


def _round(number: float, digits: int) -> float:
    """Return a number with as many significant digits; a whole one as an integer."""
    short = float(f"{number:.{digits}g}")
    return int(short) if short.is_integer() else short


def as_text(value: Any, levels: int = 4) -> str:
    """Return JSON that breaks long lines in its outer levels alone: the problems of a summary have a line each."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if len(text) <= _LINE or not levels or not isinstance(value, dict | list):
        return text
    if isinstance(value, dict):
        items = [f"{json.dumps(name)}: {as_text(part, levels - 1)}" for name, part in value.items()]
        return "{\n" + ",\n".join(items) + "\n}"
    return "[\n" + ",\n".join(as_text(part, levels - 1) for part in value) + "\n]"
