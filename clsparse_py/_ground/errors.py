"""Errors that a caller may catch, besides ``ValueError`` and ``TypeError``; warnings; checks of names."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

__all__ = [
    "ON_HOST",
    "BuildError",
    "DtypeError",
    "HostFallbackWarning",
    "NoDeviceError",
    "ProfileError",
    "class_of",
    "require_name",
    "runs_on_host",
    "warn",
    "warn_of_fallback",
]

#: Parameters of a function that `runs_on_host` decorates, for type checkers.
P = ParamSpec("P")
#: Type of the result of a function that `runs_on_host` decorates, for type checkers.
T = TypeVar("T")

#: Path of the folder of the package clsparse_py, with a separator at the end.
_PACKAGE = str(Path(__file__).parents[1]) + os.sep
#: Names of the functions that always run on the host, in the modules that are loaded so far.
ON_HOST: set[str] = set()


def class_of(value: object) -> str:
    """Return the name of a value's class, with its module's name unless it is built in: SciPy, too, has a ``csr_array``."""
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def require_name(argument: str, value: object, names: Sequence[str]) -> None:
    """Raise a ValueError unless the value of an argument is one of the allowed names."""
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"{argument}: must be one of {', '.join(names)}, is {value!r}")


class NoDeviceError(RuntimeError):
    """No OpenCL device can be used; the message says what to install, or which there are.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> try:
    ...     queue = sp.default_queue()
    ... except sp.NoDeviceError as error:
    ...     print(error)
    """


class DtypeError(TypeError, ValueError):
    """Values have a dtype that kernels do not take. SciPy raises a ValueError for it, NumPy a TypeError."""


class HostFallbackWarning(UserWarning):
    """A function always runs on the host, with copies from the device and to it: a process is warned once of each function.

    Examples
    --------
    >>> import warnings
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", sp.HostFallbackWarning)
    ...     A.todia().format
    'dia'
    """


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line that called the package: that of the closest caller outside of the package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@functools.cache
def warn_of_fallback(name: str) -> None:
    """Warn, once in a process, that the function of a name runs on the host."""
    warn(f"{name} runs on the host, with copies from the device and to it", HostFallbackWarning)


def runs_on_host(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return the decorator of a function that always runs on the host: the function's first call warns."""
    ON_HOST.add(name)

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        """Return the given function with a warning, before its first call in a process, that it runs on the host."""

        @functools.wraps(function)
        def call(*arguments: P.args, **named: P.kwargs) -> T:
            """Return the decorated function's result; the first call in a process warns that the function runs on the host."""
            warn_of_fallback(name)
            return function(*arguments, **named)

        return call

    return decorate


class ProfileError(ValueError):
    """A profile cannot be found, read or written, or is damaged; the message says which and why."""


class BuildError(RuntimeError):
    """A kernel does not build on a device, and nothing else can do its work.

    Attributes
    ----------
    log : str
        The compiler's message; empty if there is none.
    parameters : object
        The record from which the kernel was rendered.
    source : pathlib.Path or None
        A file with the rendered OpenCL C; None where no file could be written.
    reason : str
        The line of the log that tells most, and the driver's code.
    remembered : bool
        Whether it was not compiled, as earlier processes saw it refused.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> try:
    ...     A = sp.csr_array([[1, 2]])
    ... except sp.BuildError as error:
    ...     print(error.kernel, error.log)
    """

    def __init__(
        self, message: str, *, log: str, parameters: object, source: Path | None, reason: str = "", remembered: bool = False
    ) -> None:
        super().__init__(message)
        self.log = log
        self.parameters = parameters
        self.source = source
        self.reason = reason
        self.remembered = remembered

    @property
    def kernel(self) -> str:
        """The name of the kernel that does not build."""
        return str(getattr(self.parameters, "name", self.parameters))

    def again(self) -> BuildError:
        """Return a copy of this build error, to be raised when the refused kernel is asked for once more."""
        return BuildError(
            str(self), log=self.log, parameters=self.parameters, source=self.source, reason=self.reason, remembered=True
        )
