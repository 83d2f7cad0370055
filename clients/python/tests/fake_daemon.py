"""A daemon for tests: it receives spans, and does what a test wants."""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import threading
import time
from typing import Any, Callable

from spanstatsd_opentelemetry import messages
from spanstatsd_opentelemetry.msgpack import unpack

FEATURES = {"stats": True, "peer_tags": [], "span_kinds": []}
WELCOME = {
    "version": 1, "daemon": "fake 1", "max_frame": 1 << 20, "max_batch": 1024, "max_keys": 8192,
    "max_key_bytes": 7 << 20, "features": FEATURES, "settled": True, "interval": 10**10,
}  # fmt: skip


class Peer:
    """A connection of a client."""

    def __init__(self, daemon: FakeDaemon, sock: socket.socket) -> None:
        self.daemon = daemon
        self.socket = sock
        self.keys: dict[int, bytes] = {}
        self.spans: list[tuple[bytes, int, int, int]] = []  # key, duration, end, flags
        self.lost: dict[str, int] = {}
        self.flushes: list[int] = []
        self.hello: dict[str, Any] = {}
        self.bye: str | None = None
        self.has_ended = False

    def send(self, kind: int, body: Any) -> None:
        self.socket.sendall(messages.frame(kind, body))

    def settle(self, spans: int) -> None:
        self.send(messages.FEATURES, {**FEATURES, "settled": spans})

    def die(self) -> None:
        """Ends the connection without a bye, like a killed daemon."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the client has closed it

    def serve(self) -> None:
        try:
            while True:
                (length,) = struct.unpack(">I", self._read(4))
                self._handle(*unpack(self._read(length)))
        except (EOFError, OSError):
            pass
        self.has_ended = True
        self.socket.close()

    def _read(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def _handle(self, kind: int, body: Any) -> None:
        if kind == messages.HELLO:
            self.hello = body
            self.daemon.greet(self)
        elif kind == messages.DEFINE:
            self.keys.update(body)
        elif kind == messages.SPANS:
            for key, *rest in body:
                self.spans.append((self.keys[key] if isinstance(key, int) else key, *rest))
            self.daemon.on_spans(self)
        elif kind == messages.LOST:
            self.lost = {reason: self.lost.get(reason, 0) + n for reason, n in body.items()}
        elif kind == messages.FLUSH:
            self.flushes.append(body["id"])
            self.daemon.on_flush(self, body["id"])
        elif kind == messages.BYE:
            self.bye = body["reason"]
        else:
            raise AssertionError(f"a client sent a message of type {kind}")


class FakeDaemon:
    """Listens at path. By default it settles spans when the client flushes."""

    def __init__(self, path: str = "") -> None:
        self.path = path or os.path.join(tempfile.mkdtemp(prefix="spanstatsd"), "s")
        self.peers: list[Peer] = []
        self.welcome: dict[str, Any] = {}  # in addition to the default
        self.on_spans: Callable[[Peer], None] = lambda peer: None
        self.on_flush: Callable[[Peer, int], None] = settle_and_answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            peer = Peer(self, sock)
            self.peers.append(peer)
            threading.Thread(target=peer.serve, daemon=True).start()

    def greet(self, peer: Peer) -> None:
        token = f"token-{len(self.peers)}"
        peer.send(messages.WELCOME, {**WELCOME, "token": token, **self.welcome})

    def stop_listening(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        os.unlink(self.path)

    @property
    def spans(self) -> list[tuple[bytes, int, int, int]]:
        return [span for peer in self.peers for span in peer.spans]


def settle_and_answer(peer: Peer, id: int) -> None:
    peer.settle(len(peer.spans))
    peer.send(messages.FLUSH, {"id": id, "ok": True, "error": ""})


def eventually(condition: Callable[[], Any], what: str = "condition") -> Any:
    """Waits until a condition is true, and returns its value."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"{what}: not within 20 s")
