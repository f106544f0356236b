"""The two runtimes that pip installs: whether the rest of the tests has them."""

from __future__ import annotations

from lane import Lane
from platforms import PLATFORMS


def test_pocl_and_intel_are_found(lane: Lane) -> None:
    for name in ("pocl", "intel"):
        lane.require(PLATFORMS.get(name), f"{name} was not found (`make test` installs it; Intel's wheels are for x86 alone)")
    lane.say(f"the tests ran on {', '.join(PLATFORMS)}")
