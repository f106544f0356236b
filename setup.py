"""What pyproject.toml cannot say: what of profiles and templates a wheel leaves out, and what it has in one file.

Profiles come without their evidence and scores, nine tenths of them, and with little white space; kernels' sources without
headers and comments, a third; modules with empty lines in place of comments and of private functions' docstrings. All these are
there to be read, decide nothing, and stand in the repository and in source distributions.
"""

import ast
import json
import re
import tokenize
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# A comment of Mako, which no rendered source holds, and lines that are comments.
_COMMENT = re.compile(r"<%doc>.*?</%doc>|^[ \t]*(?://|##)[^\n]*\n", re.DOTALL | re.MULTILINE)


def _private_docstrings(source: str) -> list[ast.expr]:
    """Return the docstrings of functions and classes whose names begin with one underscore, where a statement follows."""
    private = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and re.match("_[^_]", node.name) and len(node.body) > 1
    )
    return [node.body[0].value for node in private if ast.get_docstring(node, clean=False) is not None]


class WithoutWhatIsRead(build_py):
    """Copy the package, cut profiles short, and put the sources of kernels into one file."""

    def run(self) -> None:
        """Copy, cut and pack."""
        super().run()
        if self.editable_mode:
            return  # the checkout itself is used, and there is nothing to cut
        package = Path(self.build_lib, "clsparse_py")
        for profile in (package / "_decisions" / "profiles").glob("*.json"):
            content = {**json.loads(profile.read_text("utf-8")), "evidence": [], "scores": {}}
            # A line for each member, which `profiles` looks for.
            members = (f' "{name}": {json.dumps(value, separators=(",", ":"))}' for name, value in content.items())
            profile.write_text("{\n" + ",\n".join(members) + "\n}\n", "utf-8")
        for module in package.rglob("*.py"):
            lines = module.read_text("utf-8").splitlines(keepends=True)
            with module.open("rb") as file:
                found = [token for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
            for token in found:
                if token.line.lstrip().startswith("#"):
                    lines[token.start[0] - 1] = "\n"
            for docstring in _private_docstrings("".join(lines)):
                for line in range(docstring.lineno - 1, docstring.end_lineno):
                    lines[line] = "\n"
            module.write_text("".join(lines), "utf-8")
        files = sorted(path for folder in ("cl", "templates") for path in Path(folder).rglob("*.*"))
        packed = {path.as_posix(): _COMMENT.sub("", path.read_text("utf-8")) for path in files}
        (package / "sources.json").write_text(json.dumps(packed, indent=0, ensure_ascii=False), "utf-8")


setup(cmdclass={"build_py": WithoutWhatIsRead})
