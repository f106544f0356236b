"""What the lanes share: the section of pytest's summary that says what each did, and the list of all templates."""

from __future__ import annotations

import pytest
from lane import Lane

from clsparse_py.catalogue import template_names


@pytest.fixture
def lane(request: pytest.FixtureRequest) -> Lane:
    """The lane that the test's module is named after."""
    return Lane(request.module.__name__.rpartition("test_")[2], request.node.user_properties)


@pytest.fixture(scope="session")
def templates() -> set[str]:
    """The names of all kernel templates."""
    return set(template_names())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what the lanes did, whatever pytest's verbosity is."""
    # What a test says travels with its report, as it may have run in another process.
    reports = (each for kind in ("passed", "failed", "skipped") for each in terminalreporter.getreports(kind))
    said = [text for report in reports for name, text in report.user_properties if name == "lane"]
    if said:
        terminalreporter.section("lanes")
        for line in dict.fromkeys(said):
            terminalreporter.write_line(line)
