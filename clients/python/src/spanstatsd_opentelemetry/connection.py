"""A connection to the daemon: finding its socket, the greeting, and reading and writing without waiting."""

from __future__ import annotations

import errno
import os
import select
import socket
import stat
import time
from collections import deque
from collections.abc import Mapping
from typing import Callable

from spanstatsd_opentelemetry import messages
from spanstatsd_opentelemetry.messages import Bye, Features, FlushResponse, Welcome
from spanstatsd_opentelemetry.msgpack import MalformedError

SOCKET_VARIABLE = "SPANSTATSD_SOCKET"

GREETING_TIMEOUT = 5.0  # seconds from connecting to the daemon's welcome
SEND_BUFFER = 256 << 10


def socket_paths(configured: str = "") -> list[str]:
    """Returns the paths to try, in this order."""
    configured = configured or os.environ.get(SOCKET_VARIABLE, "")
    if configured:
        return [configured]
    paths = ["/var/run/spanstatsd/spans.sock"]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime):
        paths.append(os.path.join(runtime, "spanstatsd", "spans.sock"))
    temporary = os.environ.get("TMPDIR") or "/tmp"
    paths.append(os.path.join(temporary, f"spanstatsd-{os.getuid()}", "spans.sock"))
    return paths[:1] + [path for path in paths[1:] if _is_own_directory(os.path.dirname(path))]


def _is_own_directory(path: str) -> bool:
    """Reports whether no other user could have created a socket in a directory."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


class Connection:
    """A connection on which the daemon has sent its welcome. It is used by one thread."""

    def __init__(self, sock: socket.socket, welcome: Welcome, unread: bytes) -> None:
        self.socket = sock
        self.welcome = welcome
        self.features: Features = welcome.features
        self.since = time.monotonic()
        self.sent = 0  # spans that were handed over
        self.settled = 0  # how many of them the daemon has reported as settled
        self.ending: Exception | None = None  # why the connection has ended
        self.has_said_bye = False  # whether the client has
        self.responses: deque[FlushResponse] = deque()
        self.is_broken = False  # whether a write has failed
        self._unread = bytearray()
        self._unwritten = memoryview(b"")
        self._milestones: deque[tuple[int, Callable[[], None]]] = deque()  # positions of ends of messages
        self._written = 0  # bytes in total
        self._receive(unread)

    def fileno(self) -> int:
        return self.socket.fileno()

    @property
    def unsettled(self) -> int:
        """Number of sent spans without an outcome; 0 if the daemon does not report outcomes."""
        return max(self.sent - self.settled, 0) if self.welcome.settled else 0

    @property
    def is_writing(self) -> bool:
        """Whether bytes are left that the socket has not accepted yet."""
        return len(self._unwritten) > 0

    @property
    def daemon_said_bye(self) -> bool:
        return isinstance(self.ending, Bye)

    @property
    def daemon_died(self) -> bool:
        """Whether the connection has ended without a bye."""
        return isinstance(self.ending, (EOFError, ConnectionError))

    def settle(self, spans: int) -> None:
        """Records that the first spans of the connection are settled."""
        self.settled = max(self.settled, spans)

    def start_writing(self, parts: list[tuple[bytes, Callable[[], None]]]) -> None:
        """Begins to write messages. Each function is called when the socket has accepted its whole message. May only be
        called if is_writing is false."""
        position = self._written
        for message, when_written in parts:
            position += len(message)
            self._milestones.append((position, when_written))
        self._unwritten = memoryview(b"".join(message for message, _ in parts))
        self.write()

    def write(self) -> None:
        """Writes as much as the socket accepts. A failed write does not end the connection, because the daemon's bye may
        still have to be read."""
        while self.is_writing:
            try:
                count = self.socket.send(self._unwritten)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._unwritten = memoryview(b"")
                self._milestones.clear()
                self.is_broken = True
                return
            self._unwritten = self._unwritten[count:]
            self._written += count
            while self._milestones and self._milestones[0][0] <= self._written:
                self._milestones.popleft()[1]()

    def read(self) -> None:
        """Handles all messages that have arrived. Sets ending if the connection has ended."""
        try:
            while True:
                try:
                    data = self.socket.recv(1 << 16)
                except (BlockingIOError, InterruptedError):
                    return
                if not data:
                    raise EOFError("the daemon has closed the connection")
                self._receive(data)
        except (OSError, EOFError, MalformedError, Bye) as error:
            self.ending = error

    def _receive(self, data: bytes) -> None:
        self._unread += data
        for message in take_messages(self._unread):
            self._handle(*messages.split(message))

    def _handle(self, kind: int, body: object) -> None:
        if kind == messages.FEATURES:
            self.features, settled = messages.read_features(body)
            self.settle(settled)
        elif kind == messages.FLUSH:
            self.responses.append(messages.read_flush(body))
        elif kind == messages.BYE:
            raise messages.read_bye(body)
        else:
            raise MalformedError(f"the daemon sent an unexpected message of type {kind}")

    def stop_writing(self) -> None:
        """Closes the write side. The daemon reads the rest, and closes the connection."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the connection has ended already

    def close(self) -> None:
        self.socket.close()


def take_messages(unread: bytearray) -> list[bytes]:
    """Removes all complete messages from the bytes that were read, and returns them."""
    complete = []
    start = 0
    while len(unread) - start >= messages.HEADER.size:
        (length,) = messages.HEADER.unpack_from(unread, start)
        if not 1 <= length <= messages.MAX_FRAME:
            raise MalformedError(f"the daemon sent a message of {length} bytes, not 1 to {messages.MAX_FRAME}")
        end = start + messages.HEADER.size + length
        if end > len(unread):
            break
        complete.append(bytes(unread[start + messages.HEADER.size : end]))
        start = end
    del unread[:start]
    return complete


def connect(
    paths: list[str], client: str, origin: Mapping[str, str], earlier: str, wait: Callable[[socket.socket, float], None]
) -> Connection:
    """Connects to the first path at which a daemon listens, sends hello, and reads the welcome. wait waits until the
    socket is readable, for so many seconds at most, and can raise an exception to give up. Raises OSError, EOFError,
    MalformedError or Bye."""
    sock = _open(paths)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        sock.sendall(messages.hello(client, origin, earlier))  # far smaller than the empty send buffer
        deadline = time.monotonic() + GREETING_TIMEOUT
        unread = bytearray()
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"the daemon sent no welcome within {GREETING_TIMEOUT:.0f} s")
            wait(sock, left)
            try:
                data = sock.recv(1 << 16)
            except (BlockingIOError, InterruptedError):
                continue
            if not data:
                raise EOFError("the daemon closed the connection before its welcome")
            unread += data
            arrived = take_messages(unread)
            if arrived:
                break
        welcome = _read_welcome(arrived[0])
        rest = b"".join(messages.HEADER.pack(len(message)) + message for message in arrived[1:]) + bytes(unread)
        return Connection(sock, welcome, rest)
    except BaseException:
        sock.close()
        raise


def _open(paths: list[str]) -> socket.socket:
    """Returns a socket that is connected to the first of the paths that has a listener, or raises the error of the first
    path."""
    first_error: OSError | None = None
    for path in paths:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)  # close-on-exec, as all sockets of Python
        try:
            # A blocking connect waits while the daemon's accept queue is full, which a hanging daemon never empties. With
            # a timeout it fails with EAGAIN instead, and is retried later.
            sock.settimeout(GREETING_TIMEOUT)
            sock.connect(path)
            return sock
        except OSError as error:
            sock.close()
            first_error = first_error or _with_path(error, path)
    assert first_error is not None
    raise first_error


def _with_path(error: OSError, path: str) -> OSError:
    reason = error.strerror or str(error)
    if error.errno == errno.EAGAIN:
        reason = "the daemon's accept queue is full"
    return OSError(error.errno, f"connect to {path}: {reason}")


def _read_welcome(message: bytes) -> Welcome:
    kind, body = messages.split(message)
    if kind == messages.BYE:
        raise messages.read_bye(body)
    if kind != messages.WELCOME:
        raise MalformedError(f"the daemon sent a message of type {kind} instead of a welcome")
    welcome = messages.read_welcome(body)
    if welcome.version != messages.VERSION:
        raise MalformedError(
            f"the daemon supports version {welcome.version} of the protocol, this client version {messages.VERSION}; "
            "upgrade the older one"
        )
    return welcome


def wait_for(descriptors: Mapping[int, int], seconds: float) -> dict[int, int]:
    """Waits until one of the descriptors has one of its events of select.poll, and returns the events."""
    poller = select.poll()  # looked up at each call, because gevent replaces it
    for descriptor, events in descriptors.items():
        poller.register(descriptor, events)
    return dict(poller.poll(max(0, int(seconds * 1000) + 1)))
