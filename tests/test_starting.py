"""Modules that a new process loads, and work that it need not do again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyopencl as cl

# Loaded where they are used, as each takes longer to import than the package.
LATER = {"fastjsonschema", "importlib.resources", "mako", "matplotlib", "pygments", "rich", "scipy.io", "sklearn"}
#: Modules and folders of the package that few processes use.
LATER_OF_OURS = {
    f"clsparse_py.{name}"
    for name in (
        *(
            "_solvers.aggregation",
            "_solvers.amg",
            "_command.catalogue",
            "_command.cli",
            "_command.demo",
            "_distributed",
            "_graph",
        ),
        *("amg", "distributed", "graph", "networkx_backend", "_tuner.run"),
    )
}

MULTIPLY = """
import json, sys, numpy as np, pyopencl as cl, pyopencl.array
import clsparse_py
device = next(each for each in clsparse_py.devices() if each.platform.name == sys.argv[1] and each.name == sys.argv[2])
context = cl.Context([device])
queue = cl.CommandQueue(context)
A = clsparse_py.csr_array(np.eye(5, dtype=np.float32), queue=queue)
assert ((A @ A @ np.ones(5, np.float32)) == 1).all()
print(json.dumps(sorted(sys.modules)))
"""


def modules(code: str, cache: Path, *arguments: str) -> set[str]:
    """Return the modules that a new process has loaded in the end."""
    environment = {**os.environ, "CLSPARSE_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_importing_the_package_loads_nothing_that_few_processes_use(tmp_path: Path) -> None:
    loaded = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    others = modules(f"import numpy, scipy.sparse, pyopencl.array; {loaded}", tmp_path)
    result = modules(f"import clsparse_py; {loaded}", tmp_path)
    assert not LATER & (result - others)
    assert not LATER_OF_OURS & result


def test_a_later_process_fills_in_no_template(queue: cl.CommandQueue, tmp_path: Path) -> None:
    named = queue.device.platform.name, queue.device.name
    assert "mako.template" in modules(MULTIPLY, tmp_path, *named)
    assert not LATER & modules(MULTIPLY, tmp_path, *named) - {"importlib.resources"}
