"""Declaration and registration of kernels.

A kernel is declared in one place: a record, which names its template, and `examples` beside it. The decorator `kernel`
registers it. The command's list of kernels, the compilers' lanes and the tests walk over what is registered.
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

#: Records by variant, "" the one by default: "place" of the template "spmv/binning" is called "spmv/binning:place".
Examples: TypeAlias = "Iterator[tuple[str, Parameters]]"
#: Fields of a record that differ from the defaults, by variant.
Variants: TypeAlias = "Mapping[str, Mapping[str, Any]]"
#: Short forms of fields in kernels' names.
_SHORT = {"work_group": "wg", "value_bytes": "v"}
#: Work-items of a work-group of an example, if it says no other number.
_WORK_GROUP = 128


@dataclass(frozen=True)
class Parameters(abc.ABC):
    """The parameters of a template, and the key under which the built kernel is kept.

    A subclass is a frozen dataclass that names its `template` and adds its fields. `prelude` is OpenCL C that goes before the
    template's text (types, semiring, portability), `arguments` what the template is rendered with.

    Attributes
    ----------
    work_group : int
        Work-items in a work-group.
    """

    work_group: int

    #: Fields that are in the kernel's name and in the prelude, but no arguments of the template: types, as a rule.
    of_prelude: ClassVar[frozenset[str]] = frozenset((
        "work_group", "arithmetic", "portability", "index", "value_bytes", "dtype", "a", "b", "c", "t", "inner", "result", "key",
        "word", "pattern", "operation", "operator",
    ))  # fmt: skip
    #: Variants in `examples`, of a record whose other fields follow from a device and an arithmetic.
    variants: ClassVar[Variants] = {"": {}}

    @property
    @abc.abstractmethod
    def template(self) -> str:
        """The template's name, such as "spmv/subvector"; of most classes an attribute, one of all their records."""

    @property
    def file(self) -> str:
        """The name of the template's file, which is that of the template but for rows of a table."""
        return self.template

    @property
    def name(self) -> str:
        """The kernel's name, readable and an OpenCL C identifier: that of the template, and what the fields tell."""
        parts = (_abbreviate(field.name, getattr(self, field.name)) for field in fields(self))
        return "_".join((self.template.replace("/", "_"), *filter(None, parts)))

    @property
    def own(self) -> dict[str, Any]:
        """The fields that are arguments of the template, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in self.of_prelude}

    @property
    def prelude(self) -> str:
        """OpenCL C before the template's own text."""
        return ""

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options."""
        return ()

    @property
    def lane_width(self) -> int:
        """Lanes across which the kernel exchanges values, as a record's portability says; 1: none."""
        portability: Portability | None = getattr(self, "portability", None)
        return 1 if portability is None else portability.lane_width

    def arguments(self) -> Mapping[str, object]:
        """Return what the template is rendered with: numbers, strings, booleans and tuples of them; by default the fields."""
        return {"work_group": self.work_group, **self.own}

    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest legal record with at most these, or None if there is none.

        By default a work-group may have any size. Records with numbers that depend on the size have rules of their own.
        """
        if not work_group:
            return None
        portability: Portability | None = getattr(self, "portability", None)
        exchanged = {} if portability is None else {"portability": portability.at_most(lane_width)}
        return replace(self, work_group=work_group, **exchanged)

    @classmethod
    def usual(cls, device: Device, arithmetic: Arithmetic) -> dict[str, Any]:
        """Return the fields of an example by name, as far as a device and an arithmetic tell them."""
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
        """Yield the records that stand for all of the class: what the command prints, and what compilers are shown."""
        for variant, different in cls.variants.items():
            values = {**cls.usual(device, arithmetic), **different}
            yield variant, cls(**{**values, "work_group": min(values["work_group"], device.max_work_group)})


def _abbreviate(name: str, value: object) -> str:
    """Return what a kernel's name tells of a field."""
    if isinstance(value, bool):
        return name if value else ""
    if isinstance(value, int):
        return f"{_SHORT.get(name, name)}{value}"
    return value if isinstance(value, str) else getattr(value, "name", "")


_Source: TypeAlias = "Callable[[Device, Arithmetic], Examples]"
_Record = TypeVar("_Record", bound="type[Parameters]")
_Function = TypeVar("_Function", bound=_Source)
_sources: list[_Source] = []


def kernel(record: _Record) -> _Record:
    """Register the class of a record."""
    _sources.append(record.examples)
    return record


def kernels(examples: _Function) -> _Function:
    """Register several records that one function makes together: it yields the examples of all of them."""
    _sources.append(examples)
    return examples


def list_examples() -> tuple[_Source, ...]:
    """Return the functions that yield examples of the records registered so far."""
    return tuple(_sources)
