"""Bytes that ranks send for a product with a vector, and its time by a model: the explanation of a matrix over ranks."""

from __future__ import annotations

from typing import NamedTuple

from typing_extensions import override

from clsparse_py._ground.records import dataclass
from clsparse_py._ground.tables import Shown, Table

__all__ = ["Explanation", "Sent"]

#: Bandwidth of a product in bytes a second, measured on two H100.
_DEVICE = 2.4e12
#: Bandwidth between pinned memory and a device in bytes a second, measured on two H100.
_STAGING = 55e9
#: Seconds of the host for a launch, measured on two H100.
_LAUNCH = 9e-6
#: Bandwidth between devices in bytes a second, assumed: each device has a network interface or PCIe link of its own.
_NETWORK = 25e9
#: Latency of a message in seconds, assumed.
_MESSAGE = 2e-6
#: Commands from the gather to the arrival of the halo.
_COMMANDS = 6
#: Commands after the arrival of the halo.
_COMMANDS_AFTER = 2


class Sent(NamedTuple):
    """The entries of x that one rank receives for a product, and the entries of the matrix that it reads.

    Attributes
    ----------
    halo : int
        Entries of x.
    sources : int
        Ranks that they come from: messages.
    entries, rows : int
        Stored entries of the rank's rows, and the number of these rows.
    value_bytes, index_bytes : int
        Of a value, and of the index of an entry.
    """

    halo: int
    sources: int
    entries: int
    rows: int
    value_bytes: int = 8
    index_bytes: int = 4

    @property
    def bytes(self) -> int:
        """Bytes of the messages."""
        return self.halo * self.value_bytes

    @property
    def bytes_of_entries(self) -> int:
        """Bytes of the rank's entries, which the product reads."""
        return self.entries * (self.value_bytes + self.index_bytes)

    @property
    def seconds_alone(self) -> float:
        """Seconds of the product with the rank's entries, each of which is read once."""
        return self.bytes_of_entries / _DEVICE

    @property
    def seconds_of_exchange(self) -> float:
        """Seconds from the gather to the arrival of the halo: to the host, over the network, to the device; 0 without one."""
        if not self.sources:
            return 0.0
        return self.bytes * (2 / _STAGING + 1 / _NETWORK) + self.sources * _MESSAGE + _COMMANDS * _LAUNCH

    @property
    def seconds(self) -> float:
        """Seconds of the whole product: the exchange is hidden as far as the local part lasts."""
        return max(self.seconds_alone, self.seconds_of_exchange) + _COMMANDS_AFTER * _LAUNCH


@dataclass(frozen=True)
class Explanation(Shown):
    """The bytes that each rank receives and reads for ``A @ x``, and the time by a model beside one device's. Prints as a table.

    Attributes
    ----------
    ranks : tuple of Sent
        Of each rank.
    """

    ranks: tuple[Sent, ...]

    @property
    def seconds(self) -> float:
        """Seconds of the product over the ranks, of which the slowest counts, by the model."""
        return max(rank.seconds for rank in self.ranks)

    @property
    def seconds_on_one(self) -> float:
        """Seconds of the product of all entries on one device, by the model."""
        return sum(rank.seconds_alone for rank in self.ranks) + _LAUNCH

    @property
    def one_is_faster(self) -> bool:
        """Whether several ranks take longer than one device, by the model."""
        return len(self.ranks) > 1 and self.seconds_on_one <= self.seconds

    @property
    @override
    def table(self) -> Table:
        """The table of the ranks, and below it the times by the model."""
        received, read = ("messages", "bytes of the halo"), ("bytes of the entries", "halo / entries")
        columns = "rank", "rows", *received, *read, "local, us", "exchange, us"
        rows = [
            (
                str(number), f"{rank.rows:,}", f"{rank.sources:,}", f"{rank.bytes:,}", f"{rank.bytes_of_entries:,}",
                f"{rank.bytes / max(rank.bytes_of_entries, 1):.1%}", f"{rank.seconds_alone * 1e6:,.1f}",
                f"{rank.seconds_of_exchange * 1e6:,.1f}",
            )
            for number, rank in enumerate(self.ranks)
        ]  # fmt: skip
        outcome = "one device is faster" if self.one_is_faster else f"{self.seconds_on_one / self.seconds:.1f} times as fast"
        rule = (
            f"by a model of H100s the ranks take {self.seconds * 1e6:,.0f} us, one device {self.seconds_on_one * 1e6:,.0f} us: "
            f"{outcome}"
        )
        return Table(f"A @ x over {len(self.ranks)} ranks", columns, rows, rule)

    __repr__ = Shown.__repr__
