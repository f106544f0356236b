"""The errors that a caller may catch, beside ``ValueError`` and ``TypeError``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["BuildError", "DtypeError", "HostFallbackWarning", "NoDeviceError", "ProfileError", "class_of", "require_name"]


def class_of(value: object) -> str:
    """Return the name of a value's class with its module's: SciPy, too, has a ``csr_array``."""
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def require_name(argument: str, given: object, names: Sequence[str]) -> None:
    """Raise a ValueError if an argument is none of the names that it may be: those of its ``Literal`` type."""
    if not isinstance(given, str) or given not in names:
        raise ValueError(f"{argument}: must be one of {', '.join(names)}, is {given!r}")


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
    """A method computes on the host, and its result is there. It is said once a process for each method.

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


class ProfileError(ValueError):
    """A profile cannot be found, read or written, or is damaged; the message says which and why."""


class BuildError(RuntimeError):
    """A kernel does not build on a device, and there is no other way.

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
        """The kernel's name."""
        return str(getattr(self.parameters, "name", self.parameters))

    def again(self) -> BuildError:
        """Return an error that says the same, to be raised another time."""
        return BuildError(
            str(self), log=self.log, parameters=self.parameters, source=self.source, reason=self.reason, remembered=True
        )
