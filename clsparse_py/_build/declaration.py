"""Declaration and registration of kernels.

A kernel is declared in one place: a record, which names the kernel's template, with `examples` of the record. The decorator
`kernel` registers the record. The command's list of kernels, the compilers' lanes and the tests walk over the registered records.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from typing_extensions import Self

from clsparse_py._ground.records import dataclass

if TYPE_CHECKING:
    from clsparse_py._precision.arithmetic import Arithmetic
    from clsparse_py._device.device import Device, Portability

__all__ = ["Examples", "Parameters", "Variants", "kernel", "kernels", "list_examples"]

#: Example records, each with its variant, "" by default: "place" of the template "spmv/binning" is called "spmv/binning:place".
Examples: TypeAlias = "Iterator[tuple[str, Parameters]]"
#: Fields of an example record that differ from the defaults, by variant and name.
Variants: TypeAlias = "Mapping[str, Mapping[str, Any]]"
#: Abbreviations, in the names of kernels, of the names of a parameter record's fields.
_SHORT = {"work_group": "wg", "value_bytes": "v"}
#: Default number of work-items of a work-group in the example records (parameters) of kernels.
_WORK_GROUP = 128


@dataclass(frozen=True)
class Parameters(abc.ABC):
    """The parameters of a template, and the key of the built kernel in caches.

    A subclass is a frozen dataclass that names its `template` and adds fields. `prelude` is the OpenCL C before the template's
    text (types, semiring, portability), and `arguments` are the template's arguments.

    Attributes
    ----------
    work_group : int
        Number of work-items of a work-group.
    """

    work_group: int

    #: Names of fields that are no arguments of the template, but in the kernel's name and in the prelude: mostly types.
    of_prelude: ClassVar[frozenset[str]] = frozenset((
        "work_group", "arithmetic", "portability", "index", "value_bytes", "dtype", "a", "b", "c", "t", "inner", "result", "key",
        "word", "pattern", "operation", "operator",
    ))  # fmt: skip
    #: Fields by which example records differ, by variant and name; the other fields follow from a device and an arithmetic.
    variants: ClassVar[Variants] = {"": {}}

    @property
    @abc.abstractmethod
    def template(self) -> str:
        """The template's name, such as "spmv/subvector"; most classes have one for all their records, as an attribute."""

    @property
    def file(self) -> str:
        """The name of the template's file: the template's name, but for kernels that are rows of a table and share one file."""
        return self.template

    @property
    def name(self) -> str:
        """The kernel's name, an identifier of OpenCL C: the template's name, and the values of the record's fields."""
        parts = (_abbreviate(field.name, getattr(self, field.name)) for field in fields(self))
        return "_".join((self.template.replace("/", "_"), *filter(None, parts)))

    @property
    def own(self) -> dict[str, Any]:
        """The fields of the record that are arguments of the template, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in self.of_prelude}

    @property
    def prelude(self) -> str:
        """The OpenCL C before the template's own text: types, semiring and macros of the device; by default none."""
        return ""

    @property
    def options(self) -> tuple[str, ...]:
        """The options of OpenCL's compiler for the kernel; by default none."""
        return ()

    @property
    def lane_width(self) -> int:
        """The number of lanes across which the kernel exchanges values, by the record's portability; 1: no exchange."""
        portability: Portability | None = getattr(self, "portability", None)
        return 1 if portability is None else portability.lane_width

    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: numbers, strings, booleans, tuples; by default ``work_group`` and `own`."""
        return {"work_group": self.work_group, **self.own}

    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest legal record of at most the given work-group size and lane width; None if there is none.

        By default a work-group may have any size. Records whose numbers depend on the size override this method.
        """
        if not work_group:
            return None
        portability: Portability | None = getattr(self, "portability", None)
        exchanged = {} if portability is None else {"portability": portability.at_most(lane_width)}
        return replace(self, work_group=work_group, **exchanged)

    @classmethod
    def usual(cls, device: Device, arithmetic: Arithmetic) -> dict[str, Any]:
        """Return the fields of an example record by name, as far as they follow from a device and an arithmetic."""
        values = {
            "work_group": min(_WORK_GROUP, device.max_work_group),
            "portability": device.portability,
            "arithmetic": arithmetic,
            "index": arithmetic.index,
            "dtype": arithmetic.a,
            "a": arithmetic.a,
            "b": arithmetic.x,
            "value_bytes": np.dtype(arithmetic.a).itemsize,
        }
        return {field.name: values[field.name] for field in fields(cls) if field.name in values}

    @classmethod
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records that stand for all records of the class: ``clsparse source`` lists them, tests compile them."""
        for variant, different in cls.variants.items():
            values = {**cls.usual(device, arithmetic), **different}
            yield variant, cls(**{**values, "work_group": min(values["work_group"], device.max_work_group)})


def _abbreviate(name: str, value: object) -> str:
    """Return the part of a kernel's name that stands for the value of a field of its parameter record."""
    if isinstance(value, bool):
        return name if value else ""
    if isinstance(value, int):
        return f"{_SHORT.get(name, name)}{value}"
    return value if isinstance(value, str) else getattr(value, "name", "")


#: A function that yields the example records for a device and an arithmetic.
_ExamplesOf: TypeAlias = "Callable[[Device, Arithmetic], Examples]"
_Record = TypeVar("_Record", bound="type[Parameters]")
_Function = TypeVar("_Function", bound=_ExamplesOf)
#: Functions that yield the example records of the registered kernels.
_registered: list[_ExamplesOf] = []


def kernel(record: _Record) -> _Record:
    """Register a class of parameter records, whose `examples` stand for all of its kernels, and return the class."""
    _registered.append(record.examples)
    return record


def kernels(examples: _Function) -> _Function:
    """Register a function that yields the example records of several classes, for all their kernels, and return the function."""
    _registered.append(examples)
    return examples


def list_examples() -> tuple[_ExamplesOf, ...]:
    """Return the functions that yield example records (parameters of a template) of the registered kernels."""
    return tuple(_registered)
