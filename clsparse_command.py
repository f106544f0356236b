"""The ``clsparse`` command from its first moment on: what it imports takes a second, in which it may be stopped, too."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["INTERRUPTED", "main"]

#: What a shell gives for a command that Ctrl-C ended.
INTERRUPTED = 130


def main() -> int:
    """Run the command and return its exit code."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # Names and units have letters that not every terminal has.
                stream.reconfigure(errors="replace")
        from clsparse_py.cli import main as command

        code = command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("clsparse: stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Who reads, such as `head`, has seen enough. What is left is written to nowhere, when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
