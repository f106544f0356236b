"""What pyproject.toml cannot say: what of profiles and templates a wheel leaves out.

Profiles come without their evidence, nine tenths of them, and templates without their headers, a quarter: both are there to be
read, decide nothing, and stand in the repository and in source distributions.
"""

import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# As `profiles.save` writes it: one line for each case.
_EVIDENCE = re.compile(r'^ "evidence": \[\n.*?^ \]', re.DOTALL | re.MULTILINE)
# A comment of Mako, which no rendered source holds.
_HEADER = re.compile(r"<%doc>.*?</%doc>", re.DOTALL)


class WithoutWhatIsRead(build_py):
    """Copy the package, then cut profiles and templates short."""

    def run(self) -> None:
        """Copy and cut."""
        super().run()
        package = Path(self.build_lib, "clsparse_py")
        for profile in (package / "tuning" / "profiles").glob("*.json"):
            profile.write_text(_EVIDENCE.sub(' "evidence": []', profile.read_text("utf-8")), "utf-8")
        for template in (package / "templates").rglob("*.mako"):
            template.write_text(_HEADER.sub("", template.read_text("utf-8")), "utf-8")


setup(cmdclass={"build_py": WithoutWhatIsRead})
