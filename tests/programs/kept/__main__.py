"""``python -m tests.programs.kept [PLATFORM]``: runs each script of this folder in a process of its own."""

import subprocess
import sys
from pathlib import Path

for script in sorted(Path(__file__).parent.glob("*.py")):
    if script != Path(__file__):
        done = subprocess.run([sys.executable, script, *sys.argv[1:]], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            sys.exit(f"{script}: {done.stdout}{done.stderr}")
