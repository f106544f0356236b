"""Fixtures of the lanes: the lane that a test belongs to, and the list of all templates."""

from __future__ import annotations

import pytest
from lane import Lane

from clsparse_py._command.catalogue import template_names


@pytest.fixture
def lane(request: pytest.FixtureRequest) -> Lane:
    """The lane that the test's module is named after."""
    return Lane(request.module.__name__.rpartition("test_")[2], request.node.user_properties)


@pytest.fixture(scope="session")
def templates() -> set[str]:
    """The names of all kernel templates."""
    return set(template_names())


@pytest.fixture(scope="session")
def templates_without_lanes(templates: set[str]) -> set[str]:
    """Those of kernels that devices run whose lanes exchange values through local memory alone."""
    return templates - {"spgemm/merge_team", "spgemm/merge_staged"}
