"""Accounts for every span that is offered to a client."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field

# Reasons why spans are refused or lost, as in the daemon's metrics.
BUFFER_FULL = "buffer_full"  # the buffer was full
DISCONNECTED = "disconnected"  # the daemon was unavailable for too long
NOT_WANTED = "not_wanted"  # the daemon wants no statistics
CLOSED = "closed"  # offered after the client was closed, or not sent in time
DAEMON_DIED = "daemon_died"  # sent to a killed daemon, and no longer kept or with unknown outcome
AMBIGUOUS = "ambiguous"  # sent to a killed daemon, and a destination may have them

REASONS = (BUFFER_FULL, DISCONNECTED, NOT_WANTED, CLOSED)


@dataclass(frozen=True)
class Stats:
    """Counts the spans of a client since it was opened, or since its process was forked. At any moment, the
    offered spans are published and those in refused, and the published ones are sent, buffered and those in lost."""

    published: int = 0  # accepted by publish
    refused: dict[str, int] = field(default_factory=dict)  # refused by publish, by reason
    sent: int = 0  # handed over to the daemon, without those that have to be resent
    buffered: int = 0  # published, and neither sent nor lost yet
    lost: dict[str, int] = field(default_factory=dict)  # published and lost, by reason

    # Parts of sent:
    unsettled: int = 0  # the daemon has not reported their outcome yet
    unconfirmed: int = 0  # lost with a killed daemon at most
    ambiguous: int = 0  # a killed daemon was sending them to a destination

    connects: int = 0  # connections on which a daemon sent its welcome
    daemon: str = ""  # name and version of the daemon, while connected


class Counter:
    """Counts events of any thread without a lock, because it is also used in signal handlers."""

    def __init__(self) -> None:
        self._events = itertools.count()
        self._reads = 0
        self._lock = threading.Lock()

    def increment(self) -> None:
        next(self._events)  # atomic

    def value(self) -> int:
        """Returns the number of events. Reading counts as an event of the iterator, and is subtracted."""
        with self._lock:
            value = next(self._events) - self._reads
            self._reads += 1
            return value


class Accounting:
    """The counts of one process. The sender's thread writes them, and any thread reads them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.refused = {reason: Counter() for reason in REASONS}
        self.taken = 0  # published spans that the sender has taken from the queue
        self.sent = 0
        self.lost = dict.fromkeys(REASONS, 0)
        self.unconfirmed = 0
        self.ambiguous = 0
        self.connects = 0

    def not_counted(self) -> dict[str, int]:
        """Returns all spans to report to the daemon as not counted, by reason."""
        with self.lock:
            counts = {reason: self.refused[reason].value() + self.lost[reason] for reason in REASONS}
            counts[DAEMON_DIED] = self.unconfirmed
            counts[AMBIGUOUS] = self.ambiguous
            return counts
