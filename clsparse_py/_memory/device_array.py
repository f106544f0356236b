"""PyOpenCL arrays of the package, with an error for use by NumPy functions."""

from __future__ import annotations

import operator
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

__all__ = ["OF_NO_VALUES", "DeviceArray", "is_covered"]

#: Operators of PyOpenCL's arrays with a NumPy array or scalar on the left, by NumPy's function of the operator.
_REFLECTED: Mapping[np.ufunc, Callable[[Any, Any], Any]] = {
    np.add: operator.add,
    np.subtract: lambda array, other: array.__rsub__(other),
    np.multiply: operator.mul,
    np.true_divide: lambda array, other: array.__rtruediv__(other),
    np.power: lambda array, other: array.__rpow__(other),
}


#: Functions of NumPy that need no values of an array, and so take device arrays.
OF_NO_VALUES = (np.ndim, np.shape, np.size, np.iscomplexobj, np.isrealobj)


#: Most events of unordered commands that a device array keeps in its list of events.
_MAX_EVENTS = 16

#: OpenCL's execution status of a command that has ended.
_COMPLETE = cl.command_execution_status.COMPLETE
#: Held while lists of events are exchanged.
_lock = threading.Lock()


def is_covered(event: cl.Event, later: cl.Event) -> bool:
    """Return whether a wait for ``later`` makes one for ``event`` needless: ``event`` has ended, or is of ``later``'s queue."""
    return event.command_execution_status == _COMPLETE or event.command_queue == later.command_queue


class DeviceArray(cl_array.Array):
    """A `pyopencl.array.Array` that NumPy's functions refuse with an error that says how to get the values.

    No event ever leaves the array's list of events: another list takes its place, in views and arrays `with_queue`, too. A thread
    that is about to wait may be in the driver with a list, whose events have to stay alive for as long.
    """

    #: Weak references to the array, its views and its arrays `with_queue`, which share a list of events; None without views. A
    #: list, no set, as PyOpenCL's arrays have no hash.
    _sharers: list[weakref.ref[DeviceArray]] | None = None

    def _new_with_changes(self, data: Any, *arguments: Any, **keywords: Any) -> Any:
        """Return a view, or an array of new memory if ``data`` is None; PyOpenCL's methods make their arrays by this method."""
        array = super()._new_with_changes(data, *arguments, **keywords)
        if data is not None:
            with _lock:
                sharers = self._sharers or [weakref.ref(self)]
                sharers[:] = [*(sharer for sharer in sharers if sharer() is not None), weakref.ref(array)]
                array.events = self.events
                self._sharers = array._sharers = sharers
        return array

    def note_written(self, event: cl.Event) -> None:
        """Note the event of a command that writes to the array after it waited for earlier commands on the array."""
        if self._sharers is None:
            self.events = [event]
        else:  # another thread may write to another part of the memory, unknown to this command
            self._exchange(lambda events: [*(earlier for earlier in events if not is_covered(earlier, event)), event])

    def forget(self, ended: list[cl.Event]) -> None:
        """Take the events of commands that have ended out of the array's list of events."""
        self._exchange(lambda events: [event for event in events if event not in ended])

    def _exchange(self, change: Callable[[list[cl.Event]], list[cl.Event]]) -> None:
        """Replace the list of events that the array shares with its views and arrays `with_queue` by ``change(events)``."""
        with _lock:
            self.events = events = change(self.events)
            for reference in self._sharers or ():
                if (sharer := reference()) is not None:
                    sharer.events = events

    def add_event(self, evt: cl.Event) -> None:
        """Add the event of a command that writes to the array; beyond 16 events the host waits, as PyOpenCL does."""
        self._exchange(lambda events: [*events, evt])
        if len(self.events) > _MAX_EVENTS:
            first = self.events[: _MAX_EVENTS // 2]
            cl.wait_for_events(first)
            self.forget(first)

    def finish(self) -> None:
        """Wait for all commands that write to the array."""
        if events := self.events:
            cl.wait_for_events(events)
            self.forget(events)

    def __getitem__(self, index: Any) -> Any:
        """Return a view, or the values at positions given by a device array."""
        _refuse_mask(index)
        return super().__getitem__(index)  # type: ignore[no-untyped-call] # PyOpenCL has no types

    def setitem(self, subscript: Any, value: object, *further: Any, **options: Any) -> None:
        """Write values to a view of the array, or to its entries at positions given by a device array."""
        _refuse_mask(subscript)
        super().setitem(subscript, value, *further, **options)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute an operator with a NumPy array or scalar on the left; refuse any other function."""
        if method == "__call__" and not options and ufunc in _REFLECTED and len(inputs) == 2 and inputs[1] is self:
            return _REFLECTED[ufunc](self, inputs[0])
        raise _refusal(ufunc.__name__)

    def __array_function__(self, function: Callable[..., Any], types: Any, arguments: Any, options: Any) -> Any:
        """Run a NumPy function that needs no values of the array, such as `numpy.shape`; refuse any other."""
        if function is np.result_type:
            return np.result_type(*(argument.dtype if isinstance(argument, DeviceArray) else argument for argument in arguments))
        if function in OF_NO_VALUES:
            return function.__wrapped__(*arguments, **options)  # type: ignore[attr-defined] # NumPy's own, of Python
        raise _refusal(function.__name__)

    def __array__(self, *arguments: Any, **options: Any) -> NoReturn:
        """Refuse the conversion to a NumPy array: `numpy.asarray` would read values one by one."""
        raise _refusal("asarray")

    def _number(self) -> Any:
        """Return the value of an array without dimensions as a NumPy scalar, read from the device."""
        if self.ndim:
            raise TypeError(f"an array of shape {self.shape} is no number: {_REASON}")
        return self.get()[()]

    def __index__(self) -> int:
        """Return the value of an array of integers without dimensions."""
        return operator.index(self._number())

    def __int__(self) -> int:
        """Return the value of an array without dimensions, as an integer."""
        return int(self._number())

    def __float__(self) -> float:
        """Return the value of an array without dimensions, as a float."""
        return float(self._number())

    def __complex__(self) -> complex:
        """Return the value of an array without dimensions, as a complex number."""
        return complex(self._number())

    def __dir__(self) -> list[str]:
        """Return the names of attributes, without NumPy's that device arrays refuse."""
        return [name for name in super().__dir__() if name not in _REFUSED]


#: End of the error messages that refuse a NumPy function or method for an array on a device.
_REASON = (
    "this array is on a device, where NumPy does not compute; array.get() returns its values as a NumPy array, "
    "A.get() a sparse array of the device as SciPy's"
)


class _Refused:
    """A descriptor that refuses a method of NumPy's arrays which device arrays lack."""

    # Each refused method of NumPy's arrays has a descriptor: with a `__getattr__` any attribute would take six times as long.
    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, array: object, owner: type | None = None) -> NoReturn:
        raise AttributeError(f"{self._name}: {_REASON}", name=self._name, obj=array)


def _list_refused() -> frozenset[str]:
    """Return the names of public attributes of NumPy's arrays that device arrays have neither by class nor by instance."""
    available = {*vars(DeviceArray(None, (0,), np.dtype(np.int8), "C", None, None, 0, (1,), None, None, True, 0, None, None))}
    return frozenset(
        name for name in dir(np.ndarray) if name[0] != "_" and name not in available and not hasattr(DeviceArray, name)
    )


#: Names of the attributes and methods of NumPy's arrays that device arrays refuse with an error.
_REFUSED = _list_refused()
for _name in _REFUSED:
    setattr(DeviceArray, _name, _Refused(_name))


def _refuse_mask(index: object) -> None:
    """Raise an IndexError for an index of one-byte values, such as a mask, which PyOpenCL would take for positions."""
    if isinstance(index, cl_array.Array | np.ndarray) and index.dtype.itemsize == 1:
        raise IndexError(
            "a device array takes no mask: values = A.data.get(), values[values < 0] = 0, A.data = values does it by NumPy"
        )


def _refusal(name: str) -> TypeError:
    """Return the error for a NumPy function that is called with a device array."""
    return TypeError(f"np.{name}: {_REASON}")
