"""Thresholds: numbers that an operation declares beside its code, and that profiles override."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

from clsparse_py._decisions import profiles
from clsparse_py._device.device import Device

__all__ = ["Number", "Thresholds", "number"]

Own = TypeVar("Own", bound="Thresholds")


class Number(NamedTuple):
    """The declaration of a threshold: unit, bounds, evidence, and default on devices whose lanes are loops; see `number`."""

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
    """Return the dataclass field that declares a threshold in a class derived from `Thresholds`: default, unit and bounds.

    Parameters
    ----------
    default : int or float
        The default; if it is an int, the threshold is a whole number.
    unit : str
        The unit, such as "entries of a row".
    on_cores : int or float, optional
        The default on devices whose lanes are loops, if another one.
    least, most : int or float
        Bounds of the threshold.
    power : bool
        Whether the threshold is a power of two.
    evidence : str
        How the default was found.
    """
    return field(default=default, metadata={"number": Number(unit, on_cores, least, most, power, evidence)})


class Thresholds:
    """The thresholds of an operation on a device; compared by identity, as they are keys of caches.

    Attributes
    ----------
    operation : str
        The operation's name in profiles.

    Raises
    ------
    ValueError
        A threshold is out of its bounds, as it may be in a profile; the message names the threshold.
    """

    operation: ClassVar[str]

    def __post_init__(self) -> None:
        """Raise a ValueError if a number breaks its declaration (bounds, whole, power of two); make whole ones int."""
        for name, (default, declared) in self._declared().items():
            value, is_integer = getattr(self, name), isinstance(default, int)
            if not declared.least <= value <= declared.most or (is_integer and value != int(value)):
                kind = "whole number" if is_integer else "number"
                raise ValueError(f"{name}: must be a {kind} from {declared.least} to {declared.most}, is {value}")
            if is_integer:  # kernels take whole numbers as integers
                object.__setattr__(self, name, int(value))
            if declared.power and int(value).bit_count() != 1:
                raise ValueError(f"{name}: must be a power of two, is {value}")

    def items(self) -> Mapping[str, float]:
        """Return the values of all thresholds of the operation, by the threshold's name."""
        return {name: getattr(self, name) for name in self._declared()}

    @classmethod
    def _declared(cls) -> Mapping[str, tuple[Any, Number]]:
        """Return the default and the declaration (unit, bounds) of every threshold of the class, by the threshold's name."""
        of_class: Any = cls  # classes that derive from this one are dataclasses
        return {declared.name: (declared.default, declared.metadata["number"]) for declared in fields(of_class)}

    @classmethod
    def defaults(cls, *, on_cores: bool) -> Mapping[str, float]:
        """Return the defaults of all thresholds, by name; ``on_cores`` for devices whose lanes are loops, such as CPUs."""
        return {
            name: declared.on_cores if on_cores and declared.on_cores is not None else default
            for name, (default, declared) in cls._declared().items()
        }

    @classmethod
    def from_values(cls: type[Own], values: Mapping[str, float]) -> Own:
        """Return a record of thresholds with some values by name; others have the defaults of devices with lanes (GPUs).

        Raises
        ------
        ValueError
            A name is unknown, or a value is out of its bounds.
        """
        if unknown := values.keys() - cls._declared().keys():
            raise ValueError(f"{min(unknown)} is no threshold")
        return cls(**values)

    @classmethod
    def of(cls: type[Own], device: Device, dtype: str = "any") -> Own:
        """Return an operation's thresholds on a device for a dtype: each by the closest profile that has it, else its default."""
        key = (device, cls, dtype)
        record: Own | None = profiles.kept.get(key)
        if record is None:
            record = profiles.kept[key] = cls._from_profiles(profiles.find(device), device, dtype)
        return record

    @classmethod
    def untuned(cls: type[Own], device: Device, dtype: str = "any") -> Own:
        """Return the thresholds of an operation on a device that was never tuned, from the shipped profiles alone."""
        return cls._from_profiles(profiles.find_shipped(device), device, dtype)

    @classmethod
    def _from_profiles(cls: type[Own], near: Sequence[profiles.Profile], device: Device, dtype: str) -> Own:
        """Return the thresholds of an operation by some profiles, the closest first; a profile with a bad number is rejected."""
        values = {**cls.defaults(on_cores=device.lanes_are_loops)}
        record = cls.from_values(values)
        for profile in reversed(near):
            named = profile.thresholds(cls.operation, dtype) if profiles.is_usable(profile, cls.operation) else {}
            try:
                record = cls.from_values({**values, **named}) if named else record
            except ValueError as error:
                profiles.reject(profile, cls.operation, "thresholds", str(error))
            else:
                values |= named
        return record
