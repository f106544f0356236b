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

#: Bytes of the fill command that checks a device's clock.
_BYTES = 1 << 22
#: Launches of an empty kernel in one measurement of the time of a launch.
_LAUNCHES = 100
#: Measurements of the time of a launch of an empty kernel; the least time counts.
_TRIES = 7
#: OpenCL C of a kernel that does nothing, whose launches are measured.
_NOTHING = "kernel void nothing(global uint *out) { if (out == 0) *out = 0; }"


class DeviceLostError(RuntimeError):
    """The device does not answer any more.

    Attributes
    ----------
    label : str
        The label of the configuration that ran last; "" if none ran.
    """

    def __init__(self, message: str, label: str = "") -> None:
        super().__init__(message)
        self.label = label


def profiling_queue(context: cl.Context, device: cl.Device) -> cl.CommandQueue:
    """Return a command queue whose events tell the times of their commands."""
    return cl.CommandQueue(context, device, cl.command_queue_properties.PROFILING_ENABLE)


class Clock:
    """A clock that times, in seconds, runs of configurations (kernels or methods) on a command queue.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        A queue of `profiling_queue`.

    Attributes
    ----------
    by_device : bool
        Whether the events' times are used: the device's clock was seen to pass, and no faster than the host's (quirk 24).
    overhead : float
        Seconds of the launch of an empty kernel: the least time of a product, which is added to every run. Without this addition,
        differences that no caller ever sees would decide between short runs.
    """

    def __init__(self, queue: cl.CommandQueue) -> None:
        self.queue = queue
        self._context = queue.context
        self._buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, _BYTES)
        self.by_device = self._tells_time()
        program = programs.compile_source(self._context, queue.device, _NOTHING)
        self._nothing = cl.Kernel(program, "nothing")
        self._nothing.set_args(self._buffer)
        self.overhead = min(self._time_launch() for _ in range(_TRIES))

    def _fill(self) -> cl.Event:
        """Enqueue a command that fills a buffer, to check the device and its clock by, and return the command's event."""
        return cl.enqueue_fill_buffer(self.queue, self._buffer, b"\0\0\0\0", 0, _BYTES)

    def _time_launch(self) -> float:
        """Return the seconds of the launch of an empty kernel, as the mean over `_LAUNCHES` launches."""
        begin = time.perf_counter()
        for _ in range(_LAUNCHES):
            enqueue_kernel(self.queue, self._nothing, ((1,), (1,)))
        self.queue.finish()
        return (time.perf_counter() - begin) / _LAUNCHES

    def _tells_time(self) -> bool:
        """Return whether the device's clock times a fill command, and the host's clock confirms the time."""
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
        """Raise `DeviceLostError` unless the device still fills a buffer after a configuration (kernel or method) failed."""
        try:
            self._fill().wait()
        except cl.Error as error:
            cause = f" after {label}" if label else ""
            raise DeviceLostError(f"{self.queue.device.name.strip()} does not answer any more{cause}: {error}", label) from error

    def time_once(self, run: Run) -> float:
        """Return the seconds of one run of a configuration by the host's clock; a first run may finish the build of kernels."""
        begin = time.perf_counter()
        run()
        self.queue.finish()
        return time.perf_counter() - begin

    def time_runs(self, run: Run, n: int, *, by_host: bool = False) -> list[float]:
        """Return the seconds of ``n`` runs by the host's or the device's clock; if the latter is no use, ``n`` times the mean.

        By the host's clock a run lasts from the call to the end of its commands: for runs that wait for the device themselves.

        By the device's clock a run lasts from the start of its first command to the end of its last one, and so includes the
        host's decisions in between. Runs are enqueued together, so that the host's time to enqueue does not count, but for the
        `overhead` of one launch.
        """
        if by_host:
            return [self.time_once(run) for _ in range(n)]
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
