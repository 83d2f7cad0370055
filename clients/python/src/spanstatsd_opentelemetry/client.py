"""The client of the daemon's native protocol. It does not depend on OpenTelemetry."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping

from spanstatsd_opentelemetry import accounting as reasons
from spanstatsd_opentelemetry.accounting import REASONS, Stats
from spanstatsd_opentelemetry.batches import Key
from spanstatsd_opentelemetry.exits import close_at_exit
from spanstatsd_opentelemetry.sender import WAKE_UP, Config, FlushRequest, Sender

CLOSE_TIMEOUT = 5.0


class Client:
    """Publishes spans to the daemon, from any thread, and after a fork from any process.

    A thread connects with the first span, and reconnects until the client is closed. It is a daemon thread, so close
    must be called before the process ends, or the spans of the last seconds are lost.
    """

    def __init__(
        self, origin: Mapping[str, str] | Callable[[], Mapping[str, str]], config: Config | None = None
    ) -> None:
        """origin describes the process by the names in docs/protocol.md: service, env, version, host and others. A function
        is called before each attempt to connect."""
        self._origin = origin if callable(origin) else lambda: origin
        self.config = config or Config()
        self._reset()
        _clients.add(self)

    def _reset(self) -> None:
        self._sender = Sender(self.config, self._origin)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def publish(self, key: Key, duration: int, end: int, flags: int = 0) -> bool:
        """Publishes a finished span, with its duration in nanoseconds, its end in nanoseconds since 1970, and the flags
        ERROR and TOP_LEVEL. Returns False if the span is refused, and counted as such. Never waits, takes a lock or makes
        a system call, except to wake up the thread after 2,048 queued spans."""
        sender = self._sender
        queue = sender.queue
        if sender.refusal is not None or len(queue) >= WAKE_UP:
            reason = self._refuse_or_wake(sender)
            if reason is not None:
                sender.accounting.refused[reason].increment()
                return False
        queue.append((key, duration, end, flags))  # atomic, like all use of the queue
        if self._thread is None:
            self._start()
        return True

    def _refuse_or_wake(self, sender: Sender) -> str | None:
        """Returns the reason to refuse a span, or None."""
        if sender.refusal is not None:
            return sender.refusal
        sender.wake()
        return reasons.BUFFER_FULL if len(sender.queue) >= self.config.max_queued else None

    def _start(self) -> None:
        """Starts the thread, unless another thread is doing it."""
        if not self._starting.acquire(blocking=False):
            return
        try:
            if self._thread is None:
                thread = threading.Thread(target=self._sender.run, name="spanstatsd", daemon=True)
                thread.start()
                self._thread = thread
                close_at_exit(_close_all)
        except RuntimeError:
            pass  # the interpreter is shutting down: close sends the spans
        finally:
            self._starting.release()

    def flush(self, timeout: float = 30.0) -> bool:
        """Sends all spans that were published before, and requests that the daemon delivers its statistics now. Returns
        True when every destination has accepted them. While the daemon is unavailable, it waits."""
        if self._thread is None:
            if not self._sender.queue:
                return True
            self._start()
        request = FlushRequest()
        self._sender.request_flush(request)
        request.answered.wait(timeout)
        is_accepted = request.is_accepted
        request.answered.set()  # no caller waits anymore
        return is_accepted

    def close(self, timeout: float = CLOSE_TIMEOUT) -> bool:
        """Refuses spans from now on, sends the others, and waits until the daemon has settled them. Returns False if spans
        were lost. It does not wait for a daemon that is not available, or longer than timeout seconds."""
        sender = self._sender
        sender.close(timeout)
        with self._starting:
            if self._thread is None:  # nothing was published, or no thread can be started anymore
                self._thread = threading.current_thread()
                sender.run()
        if not sender.done.wait(timeout + 1):  # the thread does not run, for example in a process that was stopped
            return False
        sender.lose_queued()
        return sender.failure is None

    def stats(self) -> Stats:
        """Returns the current counts."""
        sender, accounting = self._sender, self._sender.accounting
        if sender.done.is_set():
            sender.lose_queued()
        with accounting.lock:
            published = accounting.taken + len(sender.queue)
            connection = sender.connection
            return Stats(
                published=published,
                refused={reason: accounting.refused[reason].value() for reason in REASONS},
                sent=accounting.sent,
                buffered=published - accounting.sent - sum(accounting.lost.values()),
                lost=dict(accounting.lost),
                unsettled=sender.unsettled,
                unconfirmed=accounting.unconfirmed,
                ambiguous=accounting.ambiguous,
                connects=accounting.connects,
                daemon=connection.welcome.daemon if connection is not None else "",
            )

    def _after_fork(self) -> None:
        """Makes the client usable in a forked child. Spans and counts of before the fork are the parent's."""
        self._sender.abandon()
        self._reset()


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _close_all() -> None:
    for client in list(_clients):
        client.close()


def _reset_all() -> None:
    for client in list(_clients):
        client._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
