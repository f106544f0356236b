"""What the lanes share: the section of pytest's summary that says what each did, and the list of all templates."""

from __future__ import annotations

import pytest
from lane import Lane

from clsparse_py.catalogue import template_names

_SUMMARY = pytest.StashKey[list[str]]()


@pytest.fixture
def lane(request: pytest.FixtureRequest) -> Lane:
    """The lane that the test's module is named after."""
    return Lane(request.module.__name__.rpartition("test_")[2], request.config.stash.setdefault(_SUMMARY, []))


@pytest.fixture(scope="session")
def templates() -> set[str]:
    """The names of all kernel templates."""
    return set(template_names())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what the lanes did, whatever pytest's verbosity is."""
    lines = config.stash.get(_SUMMARY, [])
    if lines:
        terminalreporter.section("lanes")
        for line in lines:
            terminalreporter.write_line(line)
