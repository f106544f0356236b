"""Calls of one source folder's clsparse_py, timed when told: the process that ``python -m bench compare`` starts.

    python timed_calls.py FOLDER

It stands alone and uses public names of the package, since the folder may be of any commit. Each line of the standard input
is a command in JSON, and gets one line of JSON back: its result, or ``{"error": message}``.

=========  =====================================================================================================================
device     ``platform``, ``name``; ``environment``, by which the OpenCL loader finds the platform: makes a queue there
prepare    ``inputs``, a folder of operands; ``operation``: makes the first calls, and returns ``seconds`` of a later one
sample     ``seconds``, of a call: times calls, and returns ``back_to_back``, ``wall``, ``host`` and ``cpu``
result     ``folder``: writes the arrays of one more call there, 0.npy and so on; returns how many they are
release    lets go of operands, results and the package's memory
=========  =====================================================================================================================
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

# Seconds of a row of calls: short, so that some rows are not disturbed by whoever else uses the host.
_ROW = 0.01
# Least and most calls of a row.
_CALLS_IN_A_ROW = (2, 20)
# Seconds of all rows of a sample.
_ROWS = 0.05
# Most rows of a sample.
_MOST_ROWS = 20
# Seconds after which a sample begins no more rows, if calls take longer than was said.
_PATIENCE = 0.2
# Most calls of a sample that `wall` and `host` are measured by.
_CALLS = 10
# Calls after the first one, which builds, and before samples: by them, choices and memory settle.
_WARM_UP = 3

Arrays = tuple[Any, ...]


def import_from(folder: Path) -> ModuleType:
    """Return clsparse_py as it is in a source folder.

    Raises
    ------
    SystemExit
        If the folder lacks kernels, or holds no package.
    """
    sys.path[0] = str(folder)
    for name in ("cl", "templates"):
        if not any((parent / name).is_dir() for parent in (folder, folder / "clsparse_py")):
            raise SystemExit(f"{folder} holds no folder {name}")
        # In older commits these are packages that lie beside clsparse_py: those of an installed one would be found first.
        if (folder / name / "__init__.py").exists():
            _load(f"clsparse_py.{name}", folder / name)
    package = importlib.import_module("clsparse_py")
    require_own(folder)
    return package


def require_own(folder: Path) -> None:
    """Check that whatever was imported of clsparse_py is that of a folder.

    Raises
    ------
    SystemExit
        If something is not.
    """
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "clsparse_py":
            result = Path(module.__file__ or module.__path__[0]).resolve()
            if not result.is_relative_to(folder):
                raise SystemExit(f"{name} is that of {result}, not that of {folder}")


def _load(name: str, folder: Path) -> None:
    spec = importlib.util.spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise SystemExit(f"{folder}: is no package")
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


class Calls:
    """One operation on one input, ready to be called again and again."""

    def __init__(self, package: ModuleType, queue: Any, inputs: Path, operation: str) -> None:
        self._queue = queue
        self._compute = getattr(_Operations(package, queue, inputs), operation)()
        self._results: Arrays = ()

    def _call(self) -> None:
        # Let go first: new arrays then may be the same memory.
        self._results = ()
        self._results = self._compute()

    def _call_and_wait(self) -> None:
        self._call()
        self._queue.finish()

    def prepare(self) -> float:
        """Make the first calls, and return the seconds of a later one."""
        for _ in range(_WARM_UP):
            self._call_and_wait()
        start = time.perf_counter()
        self._call_and_wait()
        return time.perf_counter() - start

    def sample(self, seconds: float) -> dict[str, float]:
        """Return seconds a call, by way of timing.

        ``back_to_back`` is the fastest of several rows of calls, each row start to finish; ``wall`` and ``host`` are medians of
        calls that wait and calls that do not; ``cpu`` is what all threads of the process work for a call.
        """
        # Not timed: processes that take turns find caches full of each other's.
        self._call_and_wait()
        calls, walls = [], []
        repeat = _between(1, _ROW / seconds, _CALLS)
        for _ in range(repeat):
            start = time.perf_counter()
            self._call()
            called = time.perf_counter()
            self._queue.finish()
            calls.append(called - start)
            walls.append(time.perf_counter() - start)
        least, most = _CALLS_IN_A_ROW
        repeat = _between(least, _ROW / seconds, most)
        rows: list[float] = []
        worked = time.process_time()
        for _ in range(_between(1, _ROWS / (repeat * seconds), _MOST_ROWS)):
            if sum(rows) * repeat > _PATIENCE:
                break
            start = time.perf_counter()
            for _ in range(repeat):
                self._call()
            self._queue.finish()
            rows.append((time.perf_counter() - start) / repeat)
        cpu = (time.process_time() - worked) / (repeat * len(rows))
        return {"back_to_back": min(rows), "wall": statistics.median(walls), "host": statistics.median(calls), "cpu": cpu}

    def result(self, folder: Path) -> int:
        """Write the arrays of one more call, and return how many they are."""
        import numpy as np

        self._call_and_wait()
        for number, array in enumerate(self._results):
            np.save(folder / f"{number}.npy", array.get(self._queue))
        return len(self._results)


def _between(least: int, number: float, most: int) -> int:
    return int(min(max(number, least), most))


class _Operations:
    """The calls, as a user writes them: a csr_array made once, no allocator, no plan, a new result each time."""

    def __init__(self, package: ModuleType, queue: Any, inputs: Path) -> None:
        import scipy.sparse as sp

        self._package, self._queue, self._inputs = package, queue, inputs
        self._matrix = sp.csr_array(sp.load_npz(inputs / "A.npz"))

    def _operand(self) -> Any:
        return self._package.csr_array(self._matrix, queue=self._queue)

    def _vector(self) -> Any:
        import numpy as np
        from pyopencl import array as cla

        return cla.to_device(self._queue, np.load(self._inputs / "x.npy"))

    def spmv(self) -> Callable[[], Arrays]:
        a, x = self._operand(), self._vector()
        return lambda: (a @ x,)

    def sptrans(self) -> Callable[[], Arrays]:
        a = self._operand()
        return lambda: _parts(self._package.transpose(a))

    def spgemm(self) -> Callable[[], Arrays]:
        import scipy.sparse as sp

        a = self._operand()
        right = self._inputs / "B.npz"
        b = self._package.csr_array(sp.csr_array(sp.load_npz(right)), queue=self._queue) if right.exists() else a
        return lambda: _parts(a @ b)

    def wrap(self) -> Callable[[], Arrays]:
        """Make a csr_array of device arrays that are vouched for, and transpose it."""
        a = self._operand()
        parts, shape = (a.data, a.indices, a.indptr), a.shape
        return lambda: _parts(self._package.transpose(self._package.csr_array(parts, shape=shape, check=False)))

    def allocate(self) -> Callable[[], Arrays]:
        """Allocate an array like y of A @ x as the package does, which has no public name."""
        y = self._operand() @ self._vector()
        # Older commits have it elsewhere, by another name.
        folder = Path(self._package.__file__).parent
        home = next(name for name in ("_memory/memory", "memory", "transfer") if (folder / f"{name}.py").exists())
        module = importlib.import_module(f"clsparse_py.{home.replace('/', '.')}")
        allocate = getattr(module, "allocate", None) or module.allocated
        return lambda: (allocate(self._queue, "an array", y.size, y.dtype),)


def _parts(matrix: Any) -> Arrays:
    return matrix.indptr, matrix.indices, matrix.data


class Server:
    """Carries out commands, one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._package = import_from(folder)
        self._context: Any = None
        self._queue: Any = None
        self._calls: Calls | None = None

    def device(self, platform: str, name: str, environment: dict[str, str]) -> None:
        """Make a queue on a device."""
        import pyopencl as cl

        # The loader reads it when it is first asked for platforms; importing PyOpenCL changes it.
        os.environ.update(environment)
        results = [
            device
            for candidate in cl.get_platforms()
            if candidate.name.strip() == platform
            for device in candidate.get_devices()
            if device.name.strip() == name
        ]
        if not results:
            raise ValueError(f"there is no device {name} of {platform} in this process")
        # Kept: quirk 9.
        self._context = cl.Context([results[0]])
        self._queue = cl.CommandQueue(self._context)

    def prepare(self, inputs: str, operation: str) -> float:
        """Make the first calls of an operation."""
        self.release()
        self._calls = Calls(self._package, self._queue, Path(inputs), operation)
        seconds = self._calls.prepare()
        # Some modules are imported when they are first needed.
        require_own(self._folder)
        return seconds

    def sample(self, seconds: float) -> dict[str, float]:
        """Time calls of what was prepared."""
        return self._prepared().sample(seconds)

    def result(self, folder: str) -> int:
        """Write what the calls compute."""
        return self._prepared().result(Path(folder))

    def release(self) -> None:
        """Let go of all that a problem needed."""
        self._calls = None
        # Of any commit: the one that gives back memory, by the name that it has there.
        for name in ("free_memory", "free_scratch"):
            if hasattr(self._package, name):
                getattr(self._package, name)()

    def _prepared(self) -> Calls:
        if self._calls is None:
            raise ValueError("nothing is prepared")
        return self._calls


def serve(folder: Path, commands: TextIO, answers: TextIO) -> None:
    """Answer commands until there are no more."""
    server = Server(folder)
    for line in commands:
        name, arguments = json.loads(line)
        answer: Any
        try:
            answer = {"result": getattr(server, name)(**arguments)}
        except Exception as error:
            # Told to whoever asked; the next problem may go well.
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    # Compilers and drivers write to the standard output, too.
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with contextlib.suppress(KeyboardInterrupt), own:
        serve(Path(sys.argv[1]).resolve(), sys.stdin, own)
