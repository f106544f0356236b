"""Teams of threads of one process that drive the devices of a host: a thread is a rank with a device."""

from __future__ import annotations

import operator
import queue as queues
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from typing_extensions import Self

from clsparse_py._distributed.communicator import RankError, check_time_limit
from clsparse_py._distributed.csr import csr_array
from clsparse_py._distributed.division import Division
from clsparse_py._distributed.in_process import Hub, ThreadCommunicator
from clsparse_py._distributed.places import Place, list_default_devices, make_places
from clsparse_py._distributed.shared import Distributed, OverRanks
from clsparse_py._distributed.vectors import vector

__all__ = ["Replicated", "Team", "over"]


class _Thread(threading.local):
    """The hubs of the teams that wait for a thread: of the team whose task it runs, and of teams that led to the task."""

    hubs: frozenset[Hub] = frozenset()


#: The hubs of the teams that wait for the present thread.
_thread = _Thread()


def over(devices: Sequence[cl.Device | cl.CommandQueue] | None = None, time_limit: float = 300.0) -> Team:
    """Return the team of threads that drives devices of one host together: one thread and one context a device.

    Parameters
    ----------
    devices : sequence of pyopencl.Device or pyopencl.CommandQueue, optional
        One for each rank; a device may be there twice, and sub-devices of a CPU are devices. Of a queue its context is used. By
        default all that are like the one of `clsparse_py.default_queue`.
    time_limit : float
        Seconds that any wait of a rank for another may take.

    Raises
    ------
    ValueError
        There is no device, or they belong to two platforms.
    NoDeviceError
        A device cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> from clsparse_py import distributed
    >>> with distributed.over([sp.default_queue()] * 3) as team:
    ...     A = team.csr_array(sp.eye_array(5, format="csr").get() * 2.0, division=[0, 1, 1, 5])
    ...     x = team.vector(np.arange(5.0), A.rows)
    ...     (A @ x).gather(), float((A @ x).dot(x))
    (array([0., 2., 4., 6., 8.]), 60.0)
    """
    limit = check_time_limit(time_limit)
    return Team(make_places(list_default_devices() if devices is None else list(devices)), limit)


class Team:
    """A team of threads, each of which is a rank; made by `over`, closed by `close` or the end of a ``with`` block.

    Attributes
    ----------
    size : int
        Ranks.
    ranks : list of Communicator
        Of each thread.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> from clsparse_py import distributed
    >>> with distributed.over([sp.default_queue()] * 2) as team:
    ...     x = team.vector(np.arange(4.0))
    ...     team.each(lambda comm, x: x.own.get().tolist(), x)
    [[0.0, 1.0], [2.0, 3.0]]
    """

    def __init__(self, places: Sequence[Place], time_limit: float) -> None:
        self.size = len(places)
        self._hub = Hub(self.size)
        self.ranks = [ThreadCommunicator(self._hub, rank, place, time_limit) for rank, place in enumerate(places)]
        self._tasks: list[queues.SimpleQueue[Any]] = [queues.SimpleQueue() for _ in places]
        self._done: queues.SimpleQueue[tuple[int, Any, BaseException | None]] = queues.SimpleQueue()
        self._busy = threading.Lock()
        self._open = True
        for comm, tasks in zip(self.ranks, self._tasks, strict=True):
            # A rank's thread refers to its communicator, but not to the team, whose end (no more references) stops the threads.
            of_rank = self._hub, comm, tasks, self._done
            threading.Thread(target=_run_rank, args=of_rank, name=f"rank {comm.rank}", daemon=True).start()

    def _run_tasks(self, tasks: Sequence[Callable[[ThreadCommunicator], Any]]) -> list[Any]:
        """Run a task in each rank's thread; return the results, or raise the first error, a `RankError` only if all are."""
        self._require_outside()
        with self._busy:
            if not self._open:
                raise RuntimeError("the team is closed")
            self._hub.begin()
            hubs = _thread.hubs | {self._hub}
            for comm, task_queue, task in zip(self.ranks, self._tasks, tasks, strict=True):
                comm.begin()
                task_queue.put((task, hubs))
            finished: list[tuple[int, Any, BaseException | None]] = []
            try:
                while len(finished) < self.size:
                    finished.append(self._done.get())
            except BaseException as error:  # an interrupt
                self._hub.fail(-1, error)
                while len(finished) < self.size:
                    finished.append(self._done.get())
                raise
        finished.sort(key=lambda entry: entry[0])
        failures = [error for _, _, error in finished if error is not None]
        if failures:
            raise next((error for error in failures if not isinstance(error, RankError)), failures[0])
        return [result for _, result, _ in finished]

    def _require_outside(self) -> None:
        """Raise a RuntimeError in a thread that the team waits for: there a call of the team would wait for itself."""
        if self._hub in _thread.hubs:
            raise RuntimeError(
                "a team, or an object over its ranks, is used inside one of these: give the object to the function as an "
                "argument, as in team.run(function, A, x), and each rank has its own part of it there"
            )

    def each(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> list[Any]:
        """Call a function in each rank's thread, with the rank's communicator as first argument, and return the list of results.

        Parameters
        ----------
        function : callable
        *arguments, **named
            Objects over the team's ranks become, for each rank, its own.

        Returns
        -------
        list
            The results, in the order of ranks.

        Raises
        ------
        Exception
            That of the first rank that failed; all others were ended by it.
        RuntimeError
            It is called inside one of the team's ranks, as any use of an object over them is; or the team is closed.
        """

        def task(comm: ThreadCommunicator) -> Any:
            """Return the result of ``function`` for a rank's communicator and its own parts of the arguments."""
            own_arguments = (_pick_part(argument, comm.rank) for argument in arguments)
            return function(comm, *own_arguments, **{name: _pick_part(argument, comm.rank) for name, argument in named.items()})

        return self._run_tasks([task] * self.size)

    def run(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function in each rank's thread on its parts of objects over ranks; return one result: over ranks, or rank 0's.

        Parameters
        ----------
        function : callable
        *arguments, **named
            As of `each`, without a communicator.

        Returns
        -------
        object
            Matrices and vectors over the ranks as such, also if they are in a tuple; of all else rank 0's.
        """
        results = self.each(lambda _, *operands, **its: function(*operands, **its), *arguments, **named)
        return self._merge_results(results)

    def _merge_results(self, results: list[Any]) -> Any:
        """Return the ranks' results as one: objects over ranks as a `Replicated`, tuples entry by entry, of others rank 0's."""
        if isinstance(results[0], Distributed):
            return Replicated(self, results)
        if type(results[0]) is tuple:
            return tuple(self._merge_results(list(results_of_ranks)) for results_of_ranks in zip(*results, strict=True))
        return results[0]

    def csr_array(self, S: Any, division: Any = "entries", columns: Division | None = None) -> Any:
        """Return a SciPy matrix as a matrix divided among the team's ranks; arguments as of `csr_array.scattered`."""
        return self.run_with(csr_array.scattered, S, division=division, columns=columns)

    def vector(self, x: Any, division: Division | None = None) -> Any:
        """Return a NumPy array as a vector divided among the team's ranks, by default into equal shares."""
        return self.run_with(vector.scattered, np.asarray(x), division=division)

    def run_with(self, function: Callable[..., Any], first: Any, *arguments: Any, **named: Any) -> Any:
        """Call ``function(first, comm, ...)`` in each rank's thread, and return the ranks' results as one, as `run` does."""
        results = self.each(
            lambda comm, operand, *operands, **its: function(operand, comm, *operands, **its), first, *arguments, **named
        )
        return self._merge_results(results)

    def close(self) -> None:
        """End the threads of the team."""
        self._require_outside()
        with self._busy:
            if self._open:
                self._open = False
                for tasks in self._tasks:
                    tasks.put(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        for tasks in vars(self).get("_tasks", ()):  # none of a team that could not be made
            tasks.put(None)


def _run_rank(
    hub: Hub,
    comm: ThreadCommunicator,
    tasks: queues.SimpleQueue[Any],
    finished: queues.SimpleQueue[tuple[int, Any, BaseException | None]],
) -> None:
    """Run the tasks that a team puts into a rank's queue, in the rank's thread, until None comes in place of a task."""
    for task, _thread.hubs in iter(tasks.get, None):
        result: Any = None
        failure: BaseException | None = None
        try:
            result = task(comm)
        except BaseException as error:
            failure = error
            if not isinstance(error, RankError):
                hub.fail(comm.rank, error)
        hub.end(comm.rank)
        finished.put((comm.rank, result, failure))
        del result, failure, task


def _pick_part(value: Any, rank: int) -> Any:
    """Return a rank's part of an object over the team's ranks; other values as they are."""
    return value.parts[rank] if isinstance(value, Replicated) else value


class Replicated(OverRanks):
    """An object over a team's ranks, as the program outside them has it: methods and operators run in the threads of all ranks.

    Attributes
    ----------
    parts : list
        The ranks' own objects.
    """

    def __init__(self, team: Team, parts: list[Any]) -> None:
        self._team, self.parts = team, parts

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if callable(getattr(type(self.parts[0]), name, None)):
            return lambda *arguments, **named: self._team.run(
                lambda instance, *operands, **its: getattr(instance, name)(*operands, **its), self, *arguments, **named
            )
        return self._team.run(lambda instance: getattr(instance, name), self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the object, such as a plan, in the threads of all ranks."""
        return self._team.run(lambda instance, *operands, **its: instance(*operands, **its), self, *arguments, **named)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.parts))

    def __len__(self) -> int:
        return len(self.parts[0])


def _make_operator(apply: Callable[..., Any], *, reflected: bool = False) -> Callable[..., Any]:
    """Return the method of `Replicated` that applies an operator in all ranks' threads; ``reflected`` swaps the operands."""

    def applied(self: Replicated, *operands: Any) -> Any:
        """Apply the operator to each rank's own operands, in its thread, and return the result over the ranks."""
        return self._team.run(lambda *values: apply(*reversed(values)) if reflected else apply(*values), self, *operands)

    return applied


for _name in ("add", "sub", "mul", "truediv", "matmul"):
    setattr(Replicated, f"__{_name}__", _make_operator(getattr(operator, _name)))
    setattr(Replicated, f"__r{_name}__", _make_operator(getattr(operator, _name), reflected=True))
for _name in ("iadd", "isub", "imul", "neg", "abs"):
    setattr(Replicated, f"__{_name}__", _make_operator(getattr(operator, _name)))
