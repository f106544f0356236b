"""The ``clsparse`` command from its first moment on: what it imports takes a second, in which it may be stopped, too."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

__all__ = ["INTERRUPTED", "main"]

#: What a shell gives for a command that Ctrl-C ended.
INTERRUPTED = 130


def main() -> int:
    """Run the command and return its exit code."""
    try:
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:
                # A shell's `>&-` closes them. In this order, so that no file gets the number that a driver prints to.
                setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open to the end
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # Names and units have letters that not every terminal has.
                stream.reconfigure(errors="replace")
        from clsparse_py._command.cli import main as command

        code = command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("clsparse: stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Who reads, such as `head`, has seen enough.
        _drop_output()
        return 0
    except OSError as error:
        print(f"clsparse: {error}", file=sys.stderr)
        _drop_output()
        return 1
    return code


def _drop_output() -> None:
    """Let what is left be written to nowhere, when the interpreter ends."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
