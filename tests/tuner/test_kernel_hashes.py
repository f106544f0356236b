"""Hashes of kernels: what changes them, what profiles record of them, and where older profiles are named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from made_up import make_observation
from mako.lexer import Lexer
from mako.parsetree import Code, ControlLine, Expression

import clsparse_py
from bench.__main__ import main as bench
from clsparse_py._build import programs, sources
from clsparse_py._command import cli
from clsparse_py._decisions import kernel_hashes, profiles
from clsparse_py._decisions.kernel_hashes import OPERATIONS, hash_of, list_sources
from clsparse_py._device.device import describe
from clsparse_py._tuner import outcome, tunable
from clsparse_py._tuner.checkpoint import Checkpoint

RECORDED = {operation: hash_of(operation) for operation in OPERATIONS}
PATHS = (*sources.paths("templates"), *sources.paths("cl"))
COMMENTS = "\n// a comment\n\n## another's\n<%doc>\nmore // of \"them\n</%doc>\n  /* x * y */\n"


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder, empty."""
    monkeypatch.setenv("CLSPARSE_PROFILES", str(tmp_path / "mine"))
    profiles.forget()
    yield tmp_path / "mine"
    monkeypatch.undo()
    profiles.forget()


@pytest.fixture
def rehash(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[str, str], str]], str]:
    """Hash an operation's kernels as if files had the texts that a function makes of their paths and texts."""
    read = sources.text

    def with_texts(operation: str, change: Callable[[str, str], str]) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(sources, "text", lambda path: change(path, read(path)))
            return hash_of.__wrapped__(operation)

    return with_texts


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("a = b; // c", "a = b;"),
        ("a /* b\nc */ + d;", "a + d;"),
        ('asm("// kept /* too */"); // gone', "asm('\"// kept /* too */\"');"),
        ("x[${n // 2}] = 0;  // half of ${n // 2}", "x['${n // 2}'] = 0;"),
        ('${f"{n // 2} // {m}"} // "', "'${f\"{n // 2} // {m}\"}'"),
        ("% if n // 2:\n## no\n    x;\n% endif", "'% if n // 2:'\nx;\n'% endif'"),
        ("<%doc>\na // b\n</%doc>\n\n\n  x", "x"),
        ("<%\n    a = 1  # one\n\n    # two\n    b = '#'\n%>", repr("<%\n    a = 1\n    b = '#'\n%>")),
    ],
)
def test_comments_alone_are_left_out(text: str, bare: str) -> None:
    assert sources.strip_comments(text) == bare


@pytest.mark.parametrize("path", sources.paths("templates"))
def test_all_that_mako_evaluates_is_kept(path: str) -> None:
    """Mako's own lexer tells what is code in a template; expressions in comments of OpenCL C are comments."""
    text = sources.text(path)
    kept, lines = "".join(sources.strip_comments(text).split()).replace("\\n", ""), text.splitlines()
    waiting = [*Lexer(text).parse().nodes]
    while waiting:
        node = waiting.pop()
        waiting += getattr(node, "nodes", ())
        before = lines[node.lineno - 1][: max(node.pos - 1, 0)]
        if isinstance(node, (Expression, ControlLine, Code)) and "//" in node.text and "// " not in before.partition("${")[0]:
            of_node = "".join(line.partition("  # ")[0] for line in node.text.splitlines() if not line.lstrip().startswith("#"))
            assert "".join(of_node.split()) in kept.replace("\\'", "'"), (path, node.lineno, node.text)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_hash_changes_with_code_and_not_with_comments(operation: str, rehash: Callable[..., str]) -> None:
    assert rehash(operation, lambda _, text: text) == RECORDED[operation]
    assert rehash(operation, lambda _, text: text.replace("\n\n", "\n\n\n") + COMMENTS) == RECORDED[operation]
    own = list_sources(operation)
    for path in (min(own), max(own)):  # a file of cl/, and a template
        assert rehash(operation, lambda name, text, path=path: text + "\nint x;" * (name == path)) != RECORDED[operation]
    assert rehash(operation, lambda name, text: text + "\nint x;" * (name not in own)) == RECORDED[operation]


def test_a_template_of_another_operation_changes_no_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    added = ["templates/triangular/new.mako", "templates/spgemm/masked_new.mako", "templates/spmv/rows_new.mako"]
    paths, text = sources.paths, sources.text
    monkeypatch.setattr(sources, "paths", lambda folder: (*paths(folder), *(added if folder == "templates" else ())))
    monkeypatch.setattr(sources, "text", lambda path: "int x;" if path in added else text(path))
    assert {operation: hash_of.__wrapped__(operation) for operation in OPERATIONS} == RECORDED


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("operation", tunable.OPERATIONS)
def test_all_kernels_that_are_tuned_are_hashed(
    operation: str, kind: str, queue: cl.CommandQueue, take_as: Callable[..., None]
) -> None:
    take_as(type=kind)
    device, tuned, covered = describe(queue.device), tunable.tunables((operation,))[operation], list_sources(operation)
    matrix = scipy.sparse.random_array((2000, 2000), density=0.004, format="csr", rng=np.random.default_rng(0), dtype=np.float32)
    dtype = tuned.dtypes(device)[0]
    problem = tuned.problem(queue, "made up", matrix, dtype)
    with programs.recording() as kernels:
        for question in tuned.questions:
            labels = tuned.configurations(device, dtype, question)
            for label in labels[:: max(len(labels) // 8, 1)]:
                with suppress(ValueError, MemoryError):  # it may not suit this matrix
                    tuned.prepare(problem, question, label)()
    assert kernels
    for record in {built.parameters for built in kernels}:
        lines = programs.render(record).splitlines()
        included = {line.removeprefix("// ---- ") for line in lines if line.startswith("// ---- cl/")}
        assert {f"templates/{record.file}.mako", *included} <= covered, record


def make_profile(device: Any, **members: Any) -> dict[str, Any]:
    trees = {
        "spmv": {"any": {"scheme": {"take": "single"}, "single": {"take": "serial/64/2"}}},
        "transpose": {"any": {"method": {"take": "binned"}}},
        "spgemm": {"any": {"strategy": {"take": "esc"}, "bin": {"take": "given"}}},
    }
    return {"schema": profiles.SCHEMA, "name": "mine", "device": profiles.identity(device), "operations": trees, **members}


@pytest.mark.parametrize(
    ("recorded", "age"),
    [(RECORDED, ""), (dict.fromkeys(OPERATIONS, "0123"), "made for older kernels"), (None, "made before kernels were recorded")],
)
def test_explanations_and_devices_say_so(
    recorded: dict[str, str] | None, age: str, queue: cl.CommandQueue, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles.save(make_profile(describe(queue.device), **({} if recorded is None else {"kernels": recorded})))
    host = scipy.sparse.random_array((2000, 2000), density=0.01, format="csr", rng=np.random.default_rng(0), dtype=np.float32)
    A = clsparse_py.csr_array(host, queue=queue)
    plans = A.spmv_plan(), clsparse_py.transpose_plan(A), clsparse_py.spgemm_plan(A, A)
    for plan in plans:
        rule = plan.explain().rule
        assert "profile mine" in rule
        assert rule.endswith(f"; profile mine was {age}") if age else " kernels were " not in rule and "older" not in rule
    assert "profile" not in clsparse_py.spmv_plan(A, kernel="serial").explain().rule
    assert cli.main(["devices", "--device", queue.device.platform.name]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (f"profile mine: its choices for spmv, transpose, spgemm were {age}." in shown) == bool(age)
    assert ("profile mine" in shown) == bool(age)


def test_calls_do_not_hash(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(operation: str) -> str:
        raise AssertionError(operation)

    monkeypatch.setattr(kernel_hashes, "hash_of", refuse)
    A = clsparse_py.csr_array(scipy.sparse.eye_array(500, format="csr", dtype=np.float32), queue=queue)
    assert (A @ A.T).nnz == 500
    assert (A @ np.ones(500, np.float32)).sum() == 500
    plan = A.spmv_plan()
    with pytest.raises(AssertionError, match="spmv"):
        plan.explain()


def test_tuning_records_what_was_measured(queue: cl.CommandQueue) -> None:
    device, times = describe(queue.device), {"gather:0 binned": 2.0, "binned": 1.0}

    def profile(*hashes: str, base: dict[str, Any] | None = None) -> dict[str, Any]:
        checkpoint = Checkpoint(None)
        names = ("rows", "columns", "nnz", "mean", "mean_of_columns", "square", "value_bytes")
        for number in range(16):
            of_operation = {"operation": "transpose", "dtype": "any", "kernels": hashes[number % len(hashes)]}
            made = make_observation(times, dict.fromkeys(names, 1.0), case=f"case{number}", family=f"family{number % 4}")
            checkpoint.add(outcome.replace(made, **of_operation))
        outcomes = outcome.train(device, checkpoint, tunable.tunables(("transpose",)))
        return outcome.profile_of(device, outcomes, base, {"name": "mine", "made": {}})["kernels"]

    new = RECORDED["transpose"]
    assert profile(new) == {"transpose": new}
    assert profile(new, "0123") == {"transpose": "0123"}
    assert profile(new, "") == {}
    # Answers that are kept are as old as they were: of other operations, and of other questions of the operation.
    base = make_profile(device, kernels={"spmv": "4567"})
    assert profile(new, base=base) == {"transpose": new, "spmv": "4567"}
    base["operations"]["transpose"]["any"]["another"] = {"take": "binned"}
    assert profile(new, base=base) == {"spmv": "4567"}
    base["kernels"] = {"transpose": new}
    assert profile(new, base=base) == {"transpose": new}


def test_a_release_refuses_older_shipped_profiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], queue: cl.CommandQueue
) -> None:
    path = tmp_path / "mine.json"
    monkeypatch.setattr(profiles, "list_shipped", lambda: [path])
    profiles.save(make_profile(describe(queue.device), kernels=RECORDED), path)
    assert bench(["check-profiles"]) == 0
    assert capsys.readouterr().out == ""
    profiles.save({**json.loads(path.read_text()), "kernels": {**RECORDED, "spmv": "0123"}}, path)
    assert bench(["check-profiles"]) == 1
    assert capsys.readouterr().out == "profile mine: its choices for spmv were made for older kernels.\n"


def test_operations_are_those_that_are_tuned() -> None:
    assert OPERATIONS == tunable.OPERATIONS
    assert all(list_sources(operation) <= set(PATHS) for operation in OPERATIONS)
