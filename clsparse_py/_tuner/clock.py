"""Times of a device, by its profiling clock or by the host's clock over batches."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyopencl as cl

from clsparse_py._build import programs
from clsparse_py._build.built import enqueue_kernel
from clsparse_py._tuner.limits import TUNER

__all__ = ["Clock", "DeviceLostError", "Run", "profiling_queue"]

#: A function that enqueues a configuration once and returns the events of its commands.
Run = Callable[[], list[cl.Event]]

#: Bytes of the fill by which a device's clock is tried.
_BYTES = 1 << 22
#: Launches that are enqueued together to measure the least time of one.
_LAUNCHES = 100
#: Measurements of a launch, of which the least counts.
_TRIES = 7
#: A kernel that does nothing, to measure a launch.
_NOTHING = "kernel void nothing(global uint *out) { if (out == 0) *out = 0; }"


class DeviceLostError(RuntimeError):
    """The device does not answer any more.

    Attributes
    ----------
    label : str
        The configuration that ran last; "" where none did.
    """

    def __init__(self, message: str, label: str = "") -> None:
        super().__init__(message)
        self.label = label


def profiling_queue(context: cl.Context, device: cl.Device) -> cl.CommandQueue:
    """Return a queue whose events know when they ran."""
    return cl.CommandQueue(context, device, cl.command_queue_properties.PROFILING_ENABLE)


class Clock:
    """Times runs on a queue.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        One of `profiling_queue`.

    Attributes
    ----------
    by_device : bool
        Whether the events' times are used: they were seen to pass, and not to pass faster than the host's (quirk 24).
    overhead : float
        Seconds of a launch that does nothing, among others: the least that a product takes, which is added to every run.
        Otherwise what takes less than that on the device would be told apart by times that no caller ever sees.
    """

    def __init__(self, queue: cl.CommandQueue) -> None:
        self.queue = queue
        self._context = queue.context
        self._buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, _BYTES)
        self.by_device = self._tells_time()
        program = programs.compile_source(self._context, queue.device, _NOTHING)
        self._nothing = cl.Kernel(program, "nothing")
        self._nothing.set_args(self._buffer)
        self.overhead = min(self._launch() for _ in range(_TRIES))

    def _fill(self) -> cl.Event:
        """Enqueue the fill by which the clock is tried."""
        return cl.enqueue_fill_buffer(self.queue, self._buffer, b"\0\0\0\0", 0, _BYTES)

    def _launch(self) -> float:
        """Return the seconds of a launch, as a mean over many."""
        begin = time.perf_counter()
        for _ in range(_LAUNCHES):
            enqueue_kernel(self.queue, self._nothing, ((1,), (1,)))
        self.queue.finish()
        return (time.perf_counter() - begin) / _LAUNCHES

    def _tells_time(self) -> bool:
        """Return whether the device's clock gives a time for a fill that the host's clock confirms."""
        self._fill().wait()
        begin = time.perf_counter()
        event = self._fill()
        event.wait()
        elapsed = time.perf_counter() - begin
        try:
            seconds = (event.profile.end - event.profile.start) * 1e-9
        except cl.Error:
            return False
        return TUNER.no_time < seconds <= elapsed * 1.1

    def check(self, label: str = "") -> None:
        """Raise `DeviceLostError` unless the device still runs a kernel correctly, after a configuration that failed."""
        try:
            self._fill().wait()
        except cl.Error as error:
            cause = f" after {label}" if label else ""
            raise DeviceLostError(f"{self.queue.device.name.strip()} does not answer any more{cause}: {error}", label) from error

    def once(self, run: Run) -> float:
        """Run once and return the seconds that passed on the host; the first run may finish a build."""
        begin = time.perf_counter()
        run()
        self.queue.finish()
        return time.perf_counter() - begin

    def samples(self, run: Run, n: int, *, by_host: bool = False) -> list[float]:
        """Run ``n`` times and return the seconds of each run.

        By the host's clock that is from the call to the end: for runs that wait for the device themselves.

        By the device's clock that is the span from the start of its first command to the end of its last: where the host decides
        in between how to go on, that counts. Runs are enqueued together, so that the host's time to enqueue does not, but for the
        `overhead` of one launch.
        """
        if by_host:
            return [self.once(run) for _ in range(n)]
        if not self.by_device:
            begin = time.perf_counter()
            for _ in range(n):
                run()
            self.queue.finish()
            return [(time.perf_counter() - begin) / n] * n
        events = [run() for _ in range(n)]
        self.queue.finish()
        spans = []
        for commands in events:
            times = [(event.profile.start, event.profile.end) for event in commands]
            spans.append(self.overhead + (max(end for _, end in times) - min(start for start, _ in times)) * 1e-9)
        return spans
