"""Sends spans to the daemon. A thread runs it, which is the only one that uses the connection.

The thread sleeps until there is something to do: spans are due, the queue is full enough, a message of the daemon has
arrived, or the client is flushed or closed. It never waits for a write, so it keeps reading while the daemon is slow.
"""

from __future__ import annotations

import logging
import os
import random
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Callable

from spanstatsd_opentelemetry import accounting as reasons
from spanstatsd_opentelemetry import messages
from spanstatsd_opentelemetry.accounting import Accounting
from spanstatsd_opentelemetry.batches import MAX_COST, MAX_KEYS, Batch, Definitions, Packer, Span
from spanstatsd_opentelemetry.connection import Connection, connect, socket_paths, wait_for
from spanstatsd_opentelemetry.kept import Kept
from spanstatsd_opentelemetry.messages import Bye
from spanstatsd_opentelemetry.msgpack import MalformedError

log = logging.getLogger("spanstatsd")

WAKE_UP = 2048  # queued spans that are sent at once
WRITE_BYTES = 64 << 10  # written at a time
BYE_TIMEOUT = 5.0  # how long the daemon's last message is awaited after a write has failed
SETTLE_TIMEOUT = 3.0  # how long close waits until all spans are settled
UNSETTLED_BYE_TIMEOUT = 1.0  # and then until the daemon has closed the connection, if they are not
MIN_BACKOFF = 0.05
EARLIER_PENDING = "earlier_pending"


@dataclass(frozen=True)
class Config:
    """Configures a client. The defaults suit most processes."""

    socket: str = ""  # path; by default that in SPANSTATSD_SOCKET, or one of the default paths
    name: str = "spanstatsd-python"  # name of the client in the daemon's log
    max_queued: int = 16_384  # spans that wait for the client's thread
    max_buffer: int = 4 << 20  # bytes of spans that wait for the daemon
    max_kept: int = 4 << 20  # bytes of spans that were sent and are not settled; 0 to resend none
    max_age: float = 5.0  # seconds that a span waits to be sent with others
    max_backoff: float = 5.0  # seconds between two attempts to connect
    max_away: float = 60.0  # seconds without a daemon after which spans are refused


class Schedule:
    """Decides how long spans wait for others, so that they are sent before an interval of the daemon ends."""

    MIN_LEAD, MAX_LEAD = 0.1, 0.3  # random, so that the processes of a pod do not send at the same time

    def __init__(self, max_age: float, interval: int) -> None:
        self._max_age = max_age
        self._interval = interval / 1e9 if 1e9 <= interval <= 3600e9 else 0.0
        self._lead = random.uniform(self.MIN_LEAD, self.MAX_LEAD)

    def wait(self, now: float) -> float:
        """Returns the seconds until spans are sent. now is the wall clock, whose multiples of the interval end it."""
        if not self._interval:
            return self._max_age
        left = self._interval - now % self._interval - self._lead
        if left <= 0:  # too late for this interval
            left += self._interval
        return min(self._max_age, left)


class FlushRequest:
    """A call of flush that waits for the daemon's response."""

    def __init__(self) -> None:
        self.answered = threading.Event()
        self.is_accepted = False

    def answer(self, is_accepted: bool) -> None:
        self.is_accepted = is_accepted
        self.answered.set()


class Sender:
    """Takes spans from a queue, and sends them until it is closed."""

    def __init__(self, config: Config, origin: Callable[[], Mapping[str, str]]) -> None:
        self.config = config
        self.queue: deque[Span] = deque()
        self.refusal: str | None = None  # reason why spans are refused, or None
        self.accounting = Accounting()
        self.connection: Connection | None = None
        self.last: Connection | None = None  # the current connection, or the one before
        self.done = threading.Event()
        self.failure: str | None = None  # why spans were lost when the sender ended

        self._origin = origin
        self._packer = Packer()
        self._pending: deque[Batch] = deque()  # to be sent, oldest first
        self._pending_bytes = 0
        self._writing: deque[Batch] = deque()  # being written
        self._kept = Kept(config.max_kept)
        self._greeting: socket.socket | None = None  # before the daemon's welcome
        self._earlier: Connection | None = None  # ended connection whose kept spans the next daemon is asked about
        self._definitions = Definitions()
        self._is_wanted = True  # the daemon wants statistics
        self._reported = self.accounting.not_counted()
        self._requests: deque[FlushRequest] = deque()  # not sent yet
        self._asked: dict[int, FlushRequest] = {}  # sent, by ID
        self._last_id = 0
        self._failures = 0  # attempts to connect, for the backoff
        self._available = time.monotonic()  # when the daemon was available last
        self._is_unavailable = False  # and this was logged
        self._deadline: float | None = None  # end of closing; None while open
        self._lock = threading.Lock()  # for refusal, and the wake-up pipe
        self._is_woken = False  # a byte is in the pipe
        self._pipe = os.pipe()
        for end in self._pipe:
            os.set_blocking(end, False)

    # Methods for other threads.

    def wake(self) -> None:
        """Ends the current or the next sleep of the thread."""
        if self._is_woken:
            return
        self._is_woken = True
        try:
            os.write(self._pipe[1], b".")
        except OSError:
            pass  # the pipe is closed, because the thread has ended

    def request_flush(self, request: FlushRequest) -> None:
        self._requests.append(request)
        self.wake()
        if self.done.is_set():
            request.answer(False)

    def close(self, timeout: float) -> None:
        """Refuses spans from now on, and lets the thread end within so many seconds."""
        with self._lock:
            self.refusal = reasons.CLOSED
            if self._deadline is None:
                self._deadline = time.monotonic() + timeout
        self.wake()

    def abandon(self) -> None:
        """Closes the copies of a parent's descriptors in a forked child, which sends nothing: the parent does. It takes no
        lock, because a thread of the parent may have held it."""
        if self.connection is not None:
            self.connection.close()
        if self._greeting is not None:
            self._greeting.close()
        for end in self._pipe:
            if end >= 0:
                os.close(end)

    @property
    def unsettled(self) -> int:
        return self.last.unsettled if self.last is not None else 0

    # The rest runs in the sender's thread.

    def run(self) -> None:
        self._available = time.monotonic()
        try:
            while True:
                connection = self._connect()
                if connection is None:
                    break
                try:
                    self._serve(connection)
                finally:
                    self._end(connection)
                if connection.has_said_bye or self._is_overdue():
                    break
        except Exception:
            log.exception("BUG: the client of spanstatsd has failed; spans are refused from now on")
        finally:
            self._finish()

    def _is_overdue(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    # Spans.

    def _drain(self) -> None:
        """Moves spans from the queue to the batches to be sent, unless too many of these wait already."""
        while self.queue and self._pending_bytes < self.config.max_buffer:
            with self.accounting.lock:
                count = min(len(self.queue), 4096)
                spans = [self.queue.popleft() for _ in range(count)]
                self.accounting.taken += count
            if not self._is_wanted:
                self._lose(reasons.NOT_WANTED, count)
                continue
            for batch in self._packer.pack(spans):
                self._pending.append(batch)
                self._pending_bytes += batch.size

    def _lose(self, reason: str, spans: int) -> None:
        with self.accounting.lock:
            self.accounting.lost[reason] += spans

    def _lose_pending(self, reason: str) -> None:
        self._lose(reason, sum(batch.spans for batch in self._pending))
        self._pending.clear()
        self._pending_bytes = 0

    def _requeue(self, batches: list[Batch]) -> None:
        """Puts batches in front of those that wait to be sent."""
        self._pending.extendleft(reversed(batches))
        self._pending_bytes += sum(batch.size for batch in batches)

    def _set_refusal(self, reason: str | None) -> None:
        with self._lock:
            if self._deadline is None:
                self.refusal = reason

    # Connecting.

    def _connect(self) -> Connection | None:
        """Connects, and retries until it succeeds. When the client is closed, it tries once more, and only if there are
        spans to send or to ask about. If the predecessor of the daemon is still shutting down, it retries until the
        deadline. Returns None if the client is closed."""
        while True:
            is_last = self._deadline is not None
            self._drain()
            if is_last and not self._pending and self._earlier is None:
                return None
            try:
                connection = self._try_connect()
            except (OSError, EOFError, MalformedError, Bye) as error:
                if not self._is_unavailable:
                    self._is_unavailable = True
                    log.warning("can't connect to spanstatsd; spans are buffered, and it is retried: %s", error)
                is_pending = isinstance(error, Bye) and error.reason == EARLIER_PENDING
                if is_last and (not is_pending or self._is_overdue()):
                    return None
                self._refuse_after_max_away()
                self._pause(is_last)
                continue
            self._start(connection)
            return connection

    def _try_connect(self) -> Connection:
        earlier = self._earlier.welcome.token if self._earlier is not None else ""
        connection = connect(
            socket_paths(self.config.socket), self.config.name, self._origin(), earlier, self._await_welcome
        )
        welcome = connection.welcome
        if welcome.max_keys < MAX_KEYS or welcome.max_key_bytes < MAX_COST:
            connection.close()
            raise MalformedError(
                f"the daemon accepts {welcome.max_keys} keys and {welcome.max_key_bytes} bytes of keys per connection, "
                f"this client needs {MAX_KEYS} and {MAX_COST}; raise --max-key-bytes of the daemon, or upgrade it"
            )
        return connection

    def _await_welcome(self, sock: socket.socket, seconds: float) -> None:
        self._greeting = sock
        if self._deadline is not None:
            seconds = min(seconds, self._deadline - time.monotonic())
        if seconds <= 0:
            raise TimeoutError("the client is closed")
        self._sleep({sock.fileno(): select.POLLIN}, seconds)

    def _refuse_after_max_away(self) -> None:
        if time.monotonic() - self._available >= self.config.max_away and self.refusal is None:
            self._set_refusal(reasons.DISCONNECTED)
            log.warning("spanstatsd is still unavailable; spans are refused and counted until it is back")

    def _pause(self, is_last: bool) -> None:
        """Waits before the next attempt to connect. The wait ends early when the client is closed."""
        limit = min(MIN_BACKOFF * 2 ** min(self._failures, 32), self.config.max_backoff)
        self._failures += 1
        end = time.monotonic() + random.uniform(0, limit)
        while time.monotonic() < end and not self._is_overdue() and (is_last or self._deadline is None):
            self._sleep({}, end - time.monotonic())
            self._drain()

    def _start(self, connection: Connection) -> None:
        """Begins a connection, and decides about the spans of the earlier one."""
        log.info("connected to spanstatsd %s", connection.welcome.daemon)
        self._is_unavailable = False
        self._definitions = Definitions()
        self._schedule = Schedule(self.config.max_age, connection.welcome.interval)
        if self._earlier is not None:
            self._settle_earlier(self._earlier, connection.welcome.earlier)
            self._earlier = None
        self.connection = self.last = connection
        with self.accounting.lock:
            self.accounting.connects += 1
        self._apply_features(connection)

    def _apply_features(self, connection: Connection) -> None:
        self._is_wanted = connection.features.stats
        self._set_refusal(None if self._is_wanted else reasons.NOT_WANTED)

    # Sending.

    def _serve(self, connection: Connection) -> None:
        """Sends spans until the connection has ended."""
        due = 0.0  # at once
        give_up = float("inf")  # when a bye is no longer awaited
        closing = _Closing(self, connection)
        while connection.ending is None:
            now = time.monotonic()
            if now >= give_up or self._is_overdue():
                connection.ending = TimeoutError("the connection did not end in time")
                break
            if now >= due:
                self._drain()
                due = now + self._schedule.wait(time.time())
            if not connection.is_broken:
                self._write(connection)
            wake_up = min(due, give_up)
            if self._deadline is not None:
                wake_up = min(wake_up, closing.advance(now), self._deadline)
            if connection.is_broken and give_up == float("inf"):
                give_up = wake_up = now + BYE_TIMEOUT
            events = select.POLLIN | (select.POLLOUT if connection.is_writing else 0)
            occurred = self._sleep({connection.fileno(): events}, wake_up - time.monotonic())
            if occurred.get(connection.fileno(), 0) & ~select.POLLOUT:
                connection.read()
                self._handle_messages(connection)
            if len(self.queue) >= WAKE_UP or self._requests:
                self._drain()

    def _sleep(self, descriptors: Mapping[int, int], seconds: float) -> dict[int, int]:
        """Waits for an event of the descriptors, or until another thread wakes this one."""
        occurred = wait_for({**descriptors, self._pipe[0]: select.POLLIN}, seconds)
        if self._pipe[0] in occurred:
            os.read(self._pipe[0], 4096)
            # From here on, threads write to the pipe again. The caller handles all that they have done before.
            self._is_woken = False
        return occurred

    def _write(self, connection: Connection) -> None:
        """Writes as much as the socket accepts: spans, then the report of lost ones, then requests."""
        connection.write()
        while not connection.is_writing and not connection.is_broken:
            parts = self._next_parts(connection)
            if not parts:
                return
            connection.start_writing(parts)

    def _next_parts(self, connection: Connection) -> list[tuple[bytes, Callable[[], None]]]:
        """Returns the next messages to write, and what to do when they are written."""
        if not self._is_wanted:
            self._lose_pending(reasons.NOT_WANTED)
        parts: list[tuple[bytes, Callable[[], None]]] = []
        size = 0
        while self._pending and size < WRITE_BYTES:
            batch = self._pending.popleft()
            self._pending_bytes -= batch.size
            self._writing.append(batch)
            definitions = self._definitions.missing(batch)
            parts.append((definitions + batch.frame, partial(self._sent, connection)))
            size += len(definitions) + len(batch.frame)
        if parts:
            return parts
        counts = self.accounting.not_counted()
        if counts != self._reported:
            new = {reason: n - self._reported[reason] for reason, n in counts.items() if n > self._reported[reason]}
            return [(messages.lost(new), partial(setattr, self, "_reported", counts))]
        if self._requests and not self.queue:
            return [self._ask(self._requests.popleft())]
        return []

    def _sent(self, connection: Connection) -> None:
        """Handles that the socket has accepted the oldest batch that is being written."""
        batch = self._writing.popleft()
        connection.sent += batch.spans
        with self.accounting.lock:
            self.accounting.sent += batch.spans
        if connection.welcome.supports_recovery and self.config.max_kept > 0:
            self._kept.add(batch, connection.sent)

    def _ask(self, request: FlushRequest) -> tuple[bytes, Callable[[], None]]:
        self._last_id += 1
        self._asked = {id: asked for id, asked in self._asked.items() if not asked.answered.is_set()}
        self._asked[self._last_id] = request
        return messages.flush(self._last_id), lambda: None

    def _handle_messages(self, connection: Connection) -> None:
        """Handles what the daemon's messages have changed."""
        self._kept.release(connection.settled)
        self._apply_features(connection)
        while connection.responses:
            response = connection.responses.popleft()
            request = self._asked.pop(response.id, None)
            if request is not None:
                if not response.ok:
                    log.warning("flush spans: the daemon could not report them: %s", response.error)
                request.answer(response.ok)

    # Ended connections.

    def _end(self, connection: Connection) -> None:
        """Closes a connection, and decides what happens to its spans."""
        connection.close()
        self.connection = None
        self._available = time.monotonic()
        if time.monotonic() - connection.since > self.config.max_backoff:
            self._failures = 0  # a connection that the daemon closes immediately counts as a failure
        log.info("disconnected from spanstatsd: %s", connection.ending)
        self._requeue(list(self._writing))
        self._writing.clear()
        for request in self._asked.values():
            request.answer(False)
        self._asked.clear()
        self._ask_next_or_forget(connection)

    def _ask_next_or_forget(self, connection: Connection) -> None:
        """If a daemon has ended, the next one knows the outcome of the unsettled spans. Without recovery, they count as
        delivered after a bye, and as lost if the daemon died."""
        has_died = connection.daemon_died and not connection.has_said_bye
        has_stopped = connection.daemon_said_bye and not connection.has_said_bye
        unsettled = connection.unsettled
        if (has_died or has_stopped) and unsettled and connection.welcome.supports_recovery:
            self._earlier = connection
            return
        self._kept.clear()
        if not connection.has_said_bye and not self._is_overdue():
            connection.settle(connection.sent)
            if has_died:
                self._count_ended(resent=0, ambiguous=0, lost=unsettled)

    def _settle_earlier(self, earlier: Connection, outcomes: Sequence[int]) -> None:
        """Decides about the unsettled spans of an earlier connection by the outcomes in a welcome."""
        unsettled = earlier.unsettled
        settled = earlier.sent - unsettled
        earlier.settle(earlier.sent)
        if outcomes:
            resolution = self._kept.resolve(earlier.sent, settled, outcomes)
            self._requeue(resolution.resend)
            resent = sum(batch.spans for batch in resolution.resend)
            self._count_ended(resent, resolution.ambiguous, resolution.lost)
            return
        self._kept.clear()
        if not earlier.daemon_said_bye:
            self._count_ended(resent=0, ambiguous=0, lost=unsettled)

    def _count_ended(self, resent: int, ambiguous: int, lost: int) -> None:
        if not resent and not ambiguous and not lost:
            return
        with self.accounting.lock:
            self.accounting.sent -= resent
            self.accounting.ambiguous += ambiguous
            self.accounting.unconfirmed += lost
        log.warning(
            "spanstatsd ended before it confirmed all spans: %d are resent, %d ambiguous, %d lost at most",
            resent, ambiguous, lost,
        )  # fmt: skip

    def _finish(self) -> None:
        """Accounts for everything that was not sent."""
        with self._lock:
            self.refusal = reasons.CLOSED
        self._requeue(list(self._writing))
        self._writing.clear()
        unsent = sum(batch.spans for batch in self._pending) + self.lose_queued()
        self._lose_pending(reasons.CLOSED)
        self._kept.clear()
        if unsent:
            self.failure = f"{unsent} spans could not be sent and are lost"
            log.warning("closed the client of spanstatsd: %s", self.failure)
        if self.unsettled:
            log.info("closed the client of spanstatsd before it confirmed %d spans", self.unsettled)
        self.done.set()
        for request in [*self._requests, *self._asked.values()]:
            request.answer(False)
        self._close_pipe()

    def lose_queued(self) -> int:
        """Counts the spans in the queue as lost, and returns their number. Any thread may call it when the sender has
        ended, for spans that were published at the same moment."""
        with self.accounting.lock:
            count = len(self.queue)
            for _ in range(count):
                self.queue.popleft()
            self.accounting.taken += count
            self.accounting.lost[reasons.CLOSED] += count
        return count

    def _close_pipe(self) -> None:
        with self._lock:
            pipe, self._pipe = self._pipe, (-1, -1)
        for end in pipe:
            if end >= 0:
                os.close(end)


class _Closing:
    """The end of a connection of a closed client: it sends the rest, requests a report, waits until all spans are
    settled, says bye, and waits until the daemon has closed the connection."""

    def __init__(self, sender: Sender, connection: Connection) -> None:
        self._sender = sender
        self._connection = connection
        self._request: FlushRequest | None = None
        self._settled_by = 0.0
        self._closed_by = float("inf")

    def advance(self, now: float) -> float:
        """Takes the next steps, if the previous ones are complete. Returns when to call it again at the latest."""
        connection = self._connection
        if connection.is_broken:
            return float("inf")
        if connection.has_said_bye:
            if now >= self._closed_by:
                connection.ending = TimeoutError("the daemon has not closed the connection in time")
            return self._closed_by
        self._sender._drain()
        self._sender._write(connection)
        if self._sender.queue or self._sender._pending or connection.is_writing:
            return float("inf")  # the socket is writable before the next step
        if self._is_settling(now):
            return self._settled_by
        connection.has_said_bye = True
        if connection.unsettled:
            self._closed_by = now + UNSETTLED_BYE_TIMEOUT
        connection.start_writing([(messages.bye("closed"), connection.stop_writing)])
        return self._closed_by

    def _is_settling(self, now: float) -> bool:
        """Reports whether to wait until all spans are settled. If the daemon responds that a destination did not accept
        them, waiting is useless."""
        connection = self._connection
        if not connection.unsettled or self._sender.config.max_kept <= 0:
            return False
        if self._request is None:
            self._request = FlushRequest()
            self._settled_by = now + SETTLE_TIMEOUT
            connection.start_writing([self._sender._ask(self._request)])
        return not self._request.answered.is_set() and now < self._settled_by
