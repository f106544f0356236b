"""A first platform whose compiler builds nothing: PyPI's PoCL under qemu, which plays a processor that its LLVM does not know.

Debian's PoCL beside it, of a newer LLVM, takes the processor for one that it knows.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import runtimes
from lane import Lane
from pairs import exhaustive

#: AMD's family 26, Zen 5: without its features, LLVM goes by the family alone, and calls what it does not know generic.
PROCESSOR = "EPYC,family=26"

_USE = """
import json, logging, os, sys
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append([record.levelname, record.getMessage()])
logging.getLogger("clsparse_py").addHandler(handler)
logging.getLogger("clsparse_py").setLevel(logging.INFO)
import numpy as np, pyopencl as cl, clsparse_py
from clsparse_py._decisions import profiles
# As if it had been tuned here, so that it comes first whatever the other one is.
(first,) = [of for platform in cl.get_platforms() for of in platform.get_devices() if "debian" not in of.driver_version]
of = {"name": first.name, "platform": first.platform.name, "vendor": "", "type": "cpu", "driver": "", "compute_units": 1}
content = {"schema": profiles.SCHEMA, "name": "first", "device": of, "operations": {}}
profiles.save(content)
assert clsparse_py.devices()[0] == first
A = clsparse_py.csr_array(np.diag(np.arange(1, 4, dtype=np.float32)))
found = (A @ np.ones(3, np.float32)).tolist()
again = clsparse_py.default_queue() is A.queue is clsparse_py.csr_array(np.eye(2, dtype=np.float32)).queue
child = os.fork()
if not child:
    try:
        clsparse_py.csr_array(np.eye(2, dtype=np.float32))
    except RuntimeError as error:
        os._exit(0 if "fork" in str(error) else 1)
    os._exit(2)
forked = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
version = A.queue.device.driver_version
print(json.dumps({"found": found, "again": again, "forked": forked, "version": version, "said": said}))
"""
_ALONE = """
import clsparse_py
try:
    clsparse_py.default_queue()
except clsparse_py.NoDeviceError as error:
    print(error)
"""


@pytest.fixture
def before(lane: Lane) -> tuple[str, ...]:
    """Return the words before a command that run it on the processor."""
    program = lane.require(shutil.which("qemu-x86_64"), "qemu is not installed (Debian: qemu-user)")
    lane.require(runtimes.bundled_pocl(), "PyPI's PoCL is not installed (its wheels are for x86-64 alone)")
    return program, "-cpu", PROCESSOR


def printed_text(stderr: str) -> list[str]:
    """Return what a process printed beside qemu, which names the features that it does not emulate."""
    return [line for line in stderr.splitlines() if not line.startswith("qemu-x86_64: ")]


def test_another_platform_takes_its_place(lane: Lane, before: tuple[str, ...], tmp_path: Path) -> None:
    other = lane.require(runtimes.pocl(), "Debian's PoCL is not installed (pocl-opencl-icd)")
    environment = runtimes.environment(tmp_path, "", other, OPENBLAS_CORETYPE="Haswell", CLSPARSE_PROFILES=str(tmp_path / "own"))
    listed = lane.run("-m", "clsparse_py", "devices", environment=environment, before=before)
    words = " ".join(listed.stdout.split())
    assert words.count("cannot be used: its compiler builds nothing: error: unknown target CPU 'generic'.") == 1
    assert words.endswith("is used by default: it is the only one.")
    used = lane.run("-c", _USE, environment=environment, before=before)
    result = json.loads(used.stdout)
    assert (result["found"], result["again"], result["forked"]) == ([1, 2, 3], True, 0)
    assert "debian" in result["version"]
    (passed_over,) = [entry for entry in result["said"] if "passed over" in entry[1]]
    assert passed_over[0] == "INFO"
    assert not [entry for entry in result["said"] if entry[0] not in ("INFO", "DEBUG")]
    if exhaustive():
        demo = lane.run("-m", "clsparse_py", "demo", environment=environment, before=before)
        lane.say(f"the demo: {demo.stdout.splitlines()[-1]}")
        assert not printed_text(demo.stderr)
    assert printed_text(listed.stderr) == printed_text(used.stderr) == []
    lane.say(f"PyPI's PoCL builds nothing on {PROCESSOR}, and is passed over for {result['version']}")


def test_alone_it_is_one_sentence(lane: Lane, before: tuple[str, ...], tmp_path: Path) -> None:
    environment = runtimes.environment(tmp_path, "", OPENBLAS_CORETYPE="Haswell")
    done = lane.run("-c", _ALONE, environment=environment, before=before)
    assert done.stdout.startswith("no OpenCL device can be used (")
    assert "its compiler builds nothing: error: unknown target CPU 'generic'" in done.stdout
    assert not printed_text(done.stderr)
