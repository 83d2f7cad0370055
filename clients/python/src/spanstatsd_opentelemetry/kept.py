"""Keeps sent batches until the daemon has settled their spans, to resend them if the daemon is killed.

A daemon reports how many spans of a connection are settled: delivered, or counted as dropped. If a daemon ends, the
client asks the next one about the others, and gets the outcome of each. docs/protocol.md describes it under "When a
daemon has died".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spanstatsd_opentelemetry.batches import Batch

# Outcomes of the spans of an earlier connection.
SETTLED, AMBIGUOUS, UNSENT = range(3)


@dataclass
class Resolution:
    """The unsettled spans of an ended connection, by what happens to them."""

    resend: list[Batch] = field(default_factory=list)  # no destination has them
    ambiguous: int = 0  # a destination may have them
    lost: int = 0  # no destination has them, and they are no longer kept


class Kept:
    """The sent batches of one connection, oldest first. Spans of a connection are numbered from 1."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._batches: deque[tuple[Batch, int]] = deque()  # with the number of its last span

    def add(self, batch: Batch, last: int) -> None:
        """Keeps a batch. If the limit is exceeded, the oldest ones are no longer kept."""
        self._batches.append((batch, last))
        self._bytes += batch.size
        while self._bytes > self._max_bytes:
            self._drop_oldest()

    def release(self, settled: int) -> None:
        """Drops the batches whose spans are settled."""
        while self._batches and self._batches[0][1] <= settled:
            self._drop_oldest()

    def clear(self) -> None:
        self._batches.clear()
        self._bytes = 0

    def _drop_oldest(self) -> None:
        batch, _ = self._batches.popleft()
        self._bytes -= batch.size

    def resolve(self, sent: int, settled: int, outcomes: Sequence[int]) -> Resolution:
        """Decides about all spans after settled, up to sent, and forgets them. outcomes are pairs of the number of the
        last span that an outcome applies to, and the outcome."""
        resolution = Resolution()
        first_kept = sent
        if self._batches:
            batch, last = self._batches[0]
            first_kept = last - batch.spans
        for outcome, spans in _ranges(settled, first_kept, outcomes):
            if outcome == AMBIGUOUS:
                resolution.ambiguous += spans
            elif outcome == UNSENT:
                resolution.lost += spans
        for batch, last in self._batches:
            outcome = _outcome_of(last, outcomes)
            if last <= settled:
                continue
            if outcome == AMBIGUOUS:
                resolution.ambiguous += batch.spans
            elif outcome == UNSENT:
                resolution.resend.append(batch)
        self.clear()
        return resolution


def _ranges(first: int, last: int, outcomes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields the outcomes of the spans after first, up to last, with the number of spans."""
    at = first
    for upto, outcome in zip(outcomes[::2], outcomes[1::2]):
        if upto > at:
            end = min(upto, last)
            if end > at:
                yield outcome, end - at
                at = end
    if last > at:
        yield UNSENT, last - at


def _outcome_of(number: int, outcomes: Sequence[int]) -> int:
    for upto, outcome in zip(outcomes[::2], outcomes[1::2]):
        if number <= upto:
            return outcome
    return UNSENT
