"""The client with a daemon that restarts, dies, hangs or is missing."""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FEATURES, FakeDaemon, Peer, eventually, settle_and_answer

from spanstatsd_opentelemetry import messages
from spanstatsd_opentelemetry.accounting import Stats
from spanstatsd_opentelemetry.batches import ERROR, TOP_LEVEL, Key
from spanstatsd_opentelemetry.client import Client
from spanstatsd_opentelemetry.kept import Kept
from spanstatsd_opentelemetry.sender import Config, Schedule

KEY = Key({"service": "shop", "operation": "http.request", "resource": "GET /"})
ORIGIN = {"service": "shop", "lang": "python"}


@pytest.fixture
def daemon() -> Iterator[FakeDaemon]:
    yield FakeDaemon()


def client_of(path: str, **config: Any) -> Client:
    return Client(ORIGIN, Config(**{"socket": path, "max_age": 0.02, "max_backoff": 0.05, **config}))


def publish(client: Client, spans: int, first: int = 0) -> None:
    for i in range(first, first + spans):
        client.publish(KEY, i, time.time_ns(), TOP_LEVEL)


def check_balance(stats: Stats, offered: int) -> None:
    assert offered == stats.published + sum(stats.refused.values())
    assert stats.published == stats.sent + stats.buffered + sum(stats.lost.values())
    assert stats.sent >= stats.unsettled + stats.unconfirmed + stats.ambiguous


def test_spans_arrive_once(daemon: FakeDaemon) -> None:
    client = client_of(daemon.path)
    client.publish(KEY, 12, 10**18, ERROR | TOP_LEVEL)
    publish(client, 5000)
    assert client.close()
    (peer,) = daemon.peers
    assert peer.spans[0] == (KEY.encoded, 12, 10**18, 3)
    assert [duration for _, duration, _, _ in peer.spans[1:]] == list(range(5000))
    assert peer.keys == {0: KEY.encoded}
    assert peer.hello["origin"] == ORIGIN and peer.hello["settled"] and peer.bye == "closed"
    stats = client.stats()
    check_balance(stats, 5001)
    assert stats.sent == 5001 and stats.unsettled == 0


def test_many_threads(daemon: FakeDaemon) -> None:
    client = client_of(daemon.path)
    threads = [threading.Thread(target=publish, args=(client, 2000)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.close()
    check_balance(client.stats(), 16_000)
    assert len(daemon.spans) == client.stats().published == 16_000


def test_many_keys(daemon: FakeDaemon) -> None:
    """Each key gets its spans although there are more keys than numbers."""
    client = client_of(daemon.path)
    keys = [Key({"service": "shop", "resource": f"GET /{i}"}) for i in range(1500)]
    for _ in range(2):
        for key in keys:
            client.publish(key, 1, 10**18)
    assert client.close()
    received = [span[0] for span in daemon.spans]
    assert received == [key.encoded for key in keys] * 2


def test_flush(daemon: FakeDaemon) -> None:
    client = client_of(daemon.path, max_age=60)
    assert client.flush(1)  # nothing to do, and no connection
    publish(client, 10)
    assert client.flush(10)
    assert len(daemon.spans) == 10 and client.stats().unsettled == 0
    daemon.on_flush = lambda peer, id: peer.send(messages.FLUSH, {"id": id, "ok": False, "error": "the agent is away"})
    assert not client.flush(10)
    daemon.on_flush = lambda peer, id: None
    assert not client.flush(0.05)
    client.close()
    assert not client.flush(1)


def test_daemon_that_comes_later() -> None:
    daemon = FakeDaemon()
    daemon.stop_listening()
    client = client_of(daemon.path)
    publish(client, 100)
    eventually(lambda: client._sender._is_unavailable)
    daemon = FakeDaemon(daemon.path)
    eventually(lambda: len(daemon.spans) == 100)
    assert client.close()


def test_no_daemon() -> None:
    """Without a daemon, spans are buffered for a while, and then refused. All are accounted for."""
    client = client_of("/nonexistent/s", max_away=0.2)
    publish(client, 100)
    eventually(lambda: not client.publish(KEY, 1, 1))
    publish(client, 10)
    offered = client.stats().published + 11
    assert client.stats().refused["disconnected"] == 11
    assert not client.close()
    stats = client.stats()
    check_balance(stats, offered)
    assert stats.lost["closed"] == stats.published and stats.buffered == 0
    assert not client.publish(KEY, 1, 1) and client.stats().refused["closed"] == 1


def test_time_before_the_first_span() -> None:
    """A program that starts to publish late has the same time until a daemon must be there."""
    client = client_of("/nonexistent/s", max_away=0.5)
    time.sleep(0.6)
    publish(client, 1)
    eventually(lambda: client._sender._is_unavailable)
    assert client.publish(KEY, 1, 1)
    client.close()


def test_full_buffer_and_report(daemon: FakeDaemon) -> None:
    """A full buffer refuses spans. The daemon gets a report about them."""
    daemon.stop_listening()
    client = client_of(daemon.path, max_buffer=10_000, max_queued=3000)
    publish(client, 2500)
    eventually(lambda: client._sender._pending_bytes >= 10_000)
    publish(client, 10_000)
    refused = client.stats().refused["buffer_full"]
    assert refused > 0
    daemon = FakeDaemon(daemon.path)
    eventually(lambda: daemon.peers and daemon.peers[-1].lost == {"buffer_full": refused})
    assert client.close()
    check_balance(client.stats(), 12_500)
    assert len(daemon.spans) == client.stats().published


def test_statistics_not_wanted(daemon: FakeDaemon) -> None:
    client = client_of(daemon.path)
    publish(client, 10)
    eventually(lambda: len(daemon.spans) == 10)
    daemon.peers[0].send(messages.FEATURES, {**FEATURES, "stats": False})
    eventually(lambda: not client.publish(KEY, 1, 1))
    daemon.peers[0].send(messages.FEATURES, FEATURES)
    eventually(lambda: client.publish(KEY, 1, 1))
    client.close()
    stats = client.stats()
    assert stats.refused["not_wanted"] > 0
    assert daemon.peers[0].lost == {"not_wanted": stats.refused["not_wanted"] + stats.lost["not_wanted"]}
    assert len(daemon.spans) == stats.sent


def test_killed_daemon(daemon: FakeDaemon) -> None:
    """The next daemon tells which spans arrived nowhere. These are resent, unchanged and before new ones."""
    daemon.on_flush = lambda peer, id: None
    client = client_of(daemon.path)
    for batch in range(4):
        publish(client, 100, first=100 * batch)
        eventually(lambda sent=100 * (batch + 1): len(daemon.spans) == sent)
    first = daemon.peers[0]
    first.settle(100)
    eventually(lambda: client.stats().unsettled == 300)
    daemon.welcome = {"earlier": [100, 0, 200, 1, 400, 2]}
    daemon.on_flush = settle_and_answer
    first.die()
    eventually(lambda: len(daemon.peers) == 2 and len(daemon.peers[1].spans) == 200)
    second = daemon.peers[1]
    assert second.hello["earlier"] == "token-1"
    assert second.spans == first.spans[200:]
    publish(client, 50, first=400)
    assert client.close()
    stats = client.stats()
    check_balance(stats, 450)
    assert (stats.ambiguous, stats.unconfirmed, stats.unsettled, stats.sent) == (100, 0, 0, 450)
    assert second.lost == {"ambiguous": 100} and len(second.spans) == 250


@pytest.mark.parametrize("says_bye", [False, True])
def test_unknown_outcome(daemon: FakeDaemon, says_bye: bool) -> None:
    """If the next daemon knows nothing, spans count as lost after a kill, and as delivered after a bye."""
    client = client_of(daemon.path)
    publish(client, 100)
    eventually(lambda: len(daemon.spans) == 100)
    if says_bye:
        daemon.peers[0].send(messages.BYE, {"reason": "shutdown"})
    daemon.peers[0].die()
    eventually(lambda: client.stats().connects == 2 and client.stats().unsettled == 0)
    assert client.close()
    stats = client.stats()
    assert stats.unconfirmed == (0 if says_bye else 100) and stats.sent == 100
    assert len(daemon.spans) == 100


def test_pending_predecessor(daemon: FakeDaemon) -> None:
    """While the predecessor is still shutting down, the client asks again with the same token."""
    client = client_of(daemon.path)
    publish(client, 10)
    eventually(lambda: len(daemon.spans) == 10)
    greet, refused = daemon.greet, []

    def greet_later(peer: Peer) -> None:
        if len(refused) < 3:
            refused.append(peer.hello["earlier"])
            peer.send(messages.BYE, {"reason": "earlier_pending"})
            peer.die()
        else:
            greet(peer)

    daemon.greet = greet_later
    daemon.welcome = {"earlier": [0, 0, 10, 2]}
    daemon.peers[0].die()
    eventually(lambda: len(daemon.spans) == 20)
    assert refused == ["token-1"] * 3
    assert client.close()


def test_frame_cut_by_death(daemon: FakeDaemon) -> None:
    """A message that the socket accepted only in part is sent whole to the next daemon."""
    reading = threading.Event()
    daemon.on_spans = lambda peer: reading.wait(20) and None
    client = client_of(daemon.path, max_buffer=20_000, max_queued=3000)
    publish(client, 1)
    eventually(lambda: daemon.spans)
    offered = 1
    while not client.stats().refused["buffer_full"]:  # until the socket is full
        publish(client, 1000, first=offered)
        offered += 1000
    daemon.welcome = {"earlier": [0, 0]}
    daemon.peers[0].die()
    eventually(lambda: client.stats().connects == 2)
    reading.set()
    assert client.close(20)
    stats = client.stats()
    check_balance(stats, offered)
    received = [duration for _, duration, _, _ in daemon.peers[1].spans]
    assert received[0] == 0 and sorted(set(received)) == received
    assert stats.sent == len(received) == stats.published


def test_hanging_daemon(daemon: FakeDaemon) -> None:
    """A daemon that does not read blocks neither publish nor close."""
    stuck = threading.Event()
    daemon.on_spans = lambda peer: stuck.wait(20) and None
    client = client_of(daemon.path, max_buffer=20_000)
    eventually(lambda: [publish(client, 1000), client.stats().refused["buffer_full"] > 0][1])
    assert not client.close(0.3)
    stats = client.stats()
    check_balance(stats, stats.published + sum(stats.refused.values()))
    assert stats.buffered == 0 and stats.lost["closed"] > 0
    stuck.set()


def test_silent_daemon(daemon: FakeDaemon) -> None:
    """A daemon that never sends its welcome does not delay close beyond its timeout."""
    daemon.greet = lambda peer: None
    client = client_of(daemon.path)
    publish(client, 10)
    eventually(lambda: daemon.peers)
    assert not client.close(0.3)
    assert client.stats().lost["closed"] == 10


def test_rejecting_daemon(daemon: FakeDaemon, caplog: pytest.LogCaptureFixture) -> None:
    daemon.greet = lambda peer: peer.send(messages.BYE, {"reason": "version", "versions": [2]})
    client = client_of(daemon.path)
    publish(client, 10)
    eventually(lambda: "versions [2]" in caplog.text)
    assert not client.close(1)
    assert len([record for record in caplog.records if "can't connect" in record.message]) == 1


def test_daemon_with_small_limits(daemon: FakeDaemon, caplog: pytest.LogCaptureFixture) -> None:
    daemon.welcome = {"max_key_bytes": 1000}
    client = client_of(daemon.path)
    publish(client, 10)
    eventually(lambda: "raise --max-key-bytes" in caplog.text)
    client.close(0.1)


def test_malformed_message_ends_connection(daemon: FakeDaemon) -> None:
    client = client_of(daemon.path)
    publish(client, 10)
    eventually(lambda: len(daemon.spans) == 10)
    daemon.peers[0].socket.sendall(b"\0\0\0\1\xc1")
    eventually(lambda: len(daemon.peers) == 2)
    publish(client, 10, first=10)
    assert client.close()
    assert len(daemon.spans) == 20


def test_signal_handler_that_publishes(daemon: FakeDaemon) -> None:
    """A signal handler can publish while the interrupted code publishes."""
    client = client_of(daemon.path)
    handled = []

    def handle(*_: Any) -> None:
        handled.append(client.publish(KEY, 1, 1))

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        publish(client, 10_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert client.close()
    assert handled
    check_balance(client.stats(), 10_000 + len(handled))
    assert len(daemon.spans) == client.stats().published


def test_forks_while_threads_publish(daemon: FakeDaemon) -> None:
    """Children have connections and counts of their own, and send nothing of their parent."""
    client = client_of(daemon.path)
    threads = [threading.Thread(target=publish, args=(client, 3000)) for _ in range(3)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(10):
        child = os.fork()
        if child == 0:
            try:
                publish(client, 500)
                stats = client.stats()
                is_right = client.close() and stats.published == 500
                os._exit(0 if is_right and client.stats().sent == 500 else 1)
            except BaseException:
                os._exit(2)
        children.append(child)
    for thread in threads:
        thread.join()
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 10
    assert client.close()
    assert client.stats().sent == 9000
    eventually(lambda: all(peer.has_ended for peer in daemon.peers))
    assert sorted(len(peer.spans) for peer in daemon.peers) == [500] * 10 + [9000]


def _work(client: Client) -> None:
    publish(client, 100)


def test_multiprocessing(daemon: FakeDaemon) -> None:
    """A child of multiprocessing sends its spans, although it ends without the functions of atexit."""
    client = client_of(daemon.path, max_age=60)
    publish(client, 10)
    process = multiprocessing.get_context("fork").Process(target=_work, args=(client,))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert client.close()
    eventually(lambda: len(daemon.spans) == 110)


_own_client: Client  # of a worker


def _open(path: str) -> None:
    global _own_client
    _own_client = client_of(path, max_age=60)


def _work_alone(_: int) -> None:
    publish(_own_client, 10)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_process_pool(daemon: FakeDaemon, method: str) -> None:
    """Workers of concurrent.futures send their spans, however the pool starts them."""
    with concurrent.futures.ProcessPoolExecutor(
        2, mp_context=multiprocessing.get_context(method), initializer=_open, initargs=(daemon.path,)
    ) as pool:
        list(pool.map(_work_alone, range(10)))
    eventually(lambda: len(daemon.spans) == 100)


def test_asyncio(daemon: FakeDaemon) -> None:
    """A program of asyncio publishes from tasks, and from threads of its executor, although the daemon does not read."""
    stuck = threading.Event()
    daemon.on_spans = lambda peer: stuck.wait(20) and None
    client = client_of(daemon.path)

    async def work() -> None:
        publish(client, 10)
        await asyncio.sleep(0)
        await asyncio.get_running_loop().run_in_executor(None, publish, client, 10)

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(50)))
        stuck.set()
        assert await asyncio.get_running_loop().run_in_executor(None, client.close)

    asyncio.run(main())
    assert len(daemon.spans) == client.stats().sent == 1000


def run_python(code: str, path: str) -> None:
    source = str(Path(__file__).parents[1] / "src")
    head = (
        "import atexit, os\n"
        "from spanstatsd_opentelemetry.client import Client\n"
        "from spanstatsd_opentelemetry.batches import Key\n"
        "from spanstatsd_opentelemetry.sender import Config\n"
        f"client = Client({{'service': 'shop'}}, Config(socket={path!r}, max_age=60))\n"
        "key = Key({'service': 'shop'})\n"
    )
    subprocess.run(
        [sys.executable, "-c", head + code], check=True, timeout=30, env={**os.environ, "PYTHONPATH": source}
    )


def test_first_span_at_interpreter_shutdown(daemon: FakeDaemon) -> None:
    """At the end of the interpreter no thread can be started: close sends the spans itself."""
    run_python(
        "import threading\n"
        "def refuse(thread): raise RuntimeError('can\\'t create new thread at interpreter shutdown')\n"
        "threading.Thread.start = refuse  # as Python 3.12 and later do\n"
        "atexit.register(client.close)\n"
        "atexit.register(client.publish, key, 1, 1)\n",
        daemon.path,
    )
    eventually(lambda: len(daemon.spans) == 1)


def test_signal_raised_again(daemon: FakeDaemon) -> None:
    """A server that ends with the signal that stopped it, like Uvicorn, loses no spans."""
    with pytest.raises(subprocess.CalledProcessError, match="SIGTERM"):
        run_python("import signal\nclient.publish(key, 1, 1)\nsignal.raise_signal(signal.SIGTERM)\n", daemon.path)
    eventually(lambda: len(daemon.spans) == 1)


def test_exit_without_close(daemon: FakeDaemon) -> None:
    """A process that ends without close does not hang, and loses its last spans."""
    run_python("client.publish(key, 1, 1)\nclient.flush()\nclient.publish(key, 1, 1)\nos._exit(0)\n", daemon.path)
    eventually(lambda: daemon.peers and daemon.peers[0].has_ended)
    assert len(daemon.spans) == 1 and daemon.peers[0].bye is None


def test_kept_memory_has_a_limit() -> None:
    from spanstatsd_opentelemetry.batches import Packer

    kept = Kept(max_bytes=10_000)
    sent = 0
    for _ in range(10):
        for batch in Packer().pack([(KEY, 1, 1, 0)] * 256):
            sent += batch.spans
            kept.add(batch, sent)
    resolution = kept.resolve(sent, 256, [256, 0, 700, 1])
    assert [batch.spans for batch in resolution.resend] == [256, 256]
    # Spans 257 to 2048 are no longer kept: up to 700 are ambiguous.
    assert (resolution.ambiguous, resolution.lost) == (700 - 256, 2048 - 700)


def test_schedule_sends_before_an_interval_ends() -> None:
    schedule = Schedule(max_age=5, interval=10**10)
    assert schedule.wait(100.0) == 5
    assert 1.7 <= schedule.wait(108.0) <= 1.9
    assert schedule.wait(109.95) == 5
    assert Schedule(max_age=5, interval=0).wait(109.0) == 5
