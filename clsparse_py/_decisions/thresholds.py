"""Thresholds: numbers declared beside the code, overridden by profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

from clsparse_py._decisions import profiles
from clsparse_py._device.device import Device

__all__ = ["Number", "Thresholds", "number"]

Own = TypeVar("Own", bound="Thresholds")


class Number(NamedTuple):
    """The declaration of a threshold: unit, bounds and default on CPU devices; see `number`."""

    unit: str
    on_cores: float | None
    least: float
    most: float
    power: bool
    evidence: str


def number(
    default: float,
    unit: str,
    *,
    on_cores: float | None = None,
    least: float = 0,
    most: float = 1 << 62,
    power: bool = False,
    evidence: str = "by hand",
) -> Any:
    """Declare a number, as a field of a class that derives from `Thresholds`.

    Parameters
    ----------
    default : int or float
        A whole one admits whole ones alone.
    unit : str
        What it counts or measures.
    on_cores : int or float, optional
        The default of devices whose lanes are loops, if it is another.
    least, most : int or float
        Its bounds.
    power : bool
        Whether it is a power of two.
    evidence : str
        What tells that the default is good.
    """
    return field(default=default, metadata={"number": Number(unit, on_cores, least, most, power, evidence)})


class Thresholds:
    """The thresholds of an operation on a device. They are told apart by identity, as they are part of what profiles keep.

    Attributes
    ----------
    operation : str
        Under which profiles hold them.

    Raises
    ------
    ValueError
        A number is out of its bounds, as it may be in a profile; the message names it.
    """

    operation: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the numbers: a profile may come from anywhere."""
        for name, (default, declared) in self._declared().items():
            value, is_integer = getattr(self, name), isinstance(default, int)
            if not declared.least <= value <= declared.most or (is_integer and value != int(value)):
                kind = "whole number" if is_integer else "number"
                raise ValueError(f"{name}: must be a {kind} from {declared.least} to {declared.most}, is {value}")
            if is_integer:  # kernels are made of these
                object.__setattr__(self, name, int(value))
            if declared.power and int(value).bit_count() != 1:
                raise ValueError(f"{name}: must be a power of two, is {value}")

    def items(self) -> Mapping[str, float]:
        """Return the values of all thresholds by name."""
        return {name: getattr(self, name) for name in self._declared()}

    @classmethod
    def _declared(cls) -> Mapping[str, tuple[Any, Number]]:
        """Return the default and the declaration of each threshold by its name."""
        of_class: Any = cls  # those that derive from this one are dataclasses
        return {declared.name: (declared.default, declared.metadata["number"]) for declared in fields(of_class)}

    @classmethod
    def defaults(cls, *, on_cores: bool) -> Mapping[str, float]:
        """Return the default of each threshold by name; ``on_cores`` for devices whose lanes are loops, such as CPUs."""
        return {
            name: declared.on_cores if on_cores and declared.on_cores is not None else default
            for name, (default, declared) in cls._declared().items()
        }

    @classmethod
    def from_values(cls: type[Own], values: Mapping[str, float]) -> Own:
        """Return thresholds with some values given by name; the others are the defaults of devices that have lanes.

        Raises
        ------
        ValueError
            There is no such threshold, or one is out of its bounds.
        """
        if unknown := values.keys() - cls._declared().keys():
            raise ValueError(f"{min(unknown)} is no threshold")
        return cls(**values)

    @classmethod
    def of(cls: type[Own], device: Device, dtype: str = "any") -> Own:
        """Return the thresholds of a device, each of the closest profile that has it, and of values of a dtype."""
        key = (device, cls, dtype)
        record: Own | None = profiles.kept.get(key)
        if record is None:
            record = profiles.kept[key] = cls._by(profiles.find(device), device, dtype)
        return record

    @classmethod
    def untuned(cls: type[Own], device: Device, dtype: str = "any") -> Own:
        """Return the thresholds of a device that was never tuned: of the shipped profiles alone."""
        return cls._by([profile for profile in profiles.find(device) if profile.shipped], device, dtype)

    @classmethod
    def _by(cls: type[Own], near: Sequence[profiles.Profile], device: Device, dtype: str) -> Own:
        """Return the thresholds of a device by some profiles, the closest of which comes first."""
        usual = cls.defaults(on_cores=device.lanes_are_loops)
        return profiles.thresholds(near, cls.operation, dtype, usual, cls.from_values)
