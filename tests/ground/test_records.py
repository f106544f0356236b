"""Frozen dataclasses that are made quickly: the same as those of `dataclasses`."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from clsparse_py._ground import records


def classes(dataclass: Callable[..., Any]) -> tuple[type, type, type]:
    """Return a class with every kind of field that the package has, one that inherits from it, and one without fields."""

    @dataclass(frozen=True)
    class Base:
        shared: ClassVar[int] = 3
        work_group: int
        name: str
        listed: bool = False
        parts: list[int] = field(default_factory=list, compare=False)
        memory: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
        last: bool = field(default=True, kw_only=True)

        def __post_init__(self) -> None:
            if self.work_group < 0:
                raise ValueError("work_group")

    @dataclass(frozen=True)
    class Derived(Base):
        work_group: int = 64
        name: str = "none"
        lanes: tuple[int, ...] = ()
        own: int = 5

        def __hash__(self) -> int:
            return 7

    @dataclass(frozen=True)
    class Empty:
        pass

    return Base, Derived, Empty


OURS = classes(records.dataclass)
THEIRS = classes(dataclasses.dataclass)


@records.dataclass(frozen=True)
class Kept:
    """One that pickle finds."""

    value: int


@records.dataclass(frozen=True, eq=False)
class Single:
    """One that is equal to itself alone."""

    value: int


def use(kinds: tuple[type, type, type]) -> list[Any]:
    """Return what a user of classes sees of them."""
    base, derived, _empty = kinds
    a, b, c = base(1, "a"), base(1, "a", parts=[1]), base(1, name="b", listed=True, last=False)
    made = [a, b, c, derived(), derived(2, "x", lanes=(1, 2)), dataclasses.replace(c, name="d")]
    return [
        [repr(result) for result in made],
        [[one == other for other in made] for one in made],
        [[hash(one) == hash(other) for other in made] for one in made],
        [dataclasses.asdict(result) for result in made],
        [[field_.name for field_ in dataclasses.fields(kind)] for kind in kinds],
        [list(inspect.signature(kind).parameters) for kind in kinds],
        (a.memory is b.memory, a.parts is b.parts, a == (1, "a"), copy.copy(c) == c, base.shared),
    ]


def test_they_are_what_dataclasses_makes() -> None:
    assert use(OURS) == use(THEIRS)
    assert hash(OURS[1]()) == 7


@pytest.mark.parametrize("kinds", [OURS, THEIRS])
def test_they_are_frozen_and_take_what_their_fields_say(kinds: tuple[type, type, type]) -> None:
    base, _derived, empty = kinds
    made = base(1, "a")
    for name in ("name", "unknown"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(made, name, 1)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(made, name)
    for arguments in ((), (1,), (1, "a", True, [], {})):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            base(*arguments)
    with pytest.raises(ValueError, match="work_group"):
        base(-1, "a")
    assert repr(empty()).endswith("Empty()")


def test_they_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(3))) == Kept(3)


def test_the_hash_stays_in_the_process() -> None:
    # Strings have other hashes in each process: a record that brought its own along would not be found in a dictionary.
    result = pickle.dumps(Kept(3))
    record = Kept(3)
    assert {record: 1}[Kept(3)] == 1
    assert pickle.dumps(record) == result
    assert hash(dataclasses.replace(record, value=4)) == hash(Kept(4))
    assert hash(copy.copy(record)) == hash(record)


def test_without_equality_each_is_itself() -> None:
    one, other = Single(1), Single(1)
    assert one != other
    assert len({one, other}) == 2
