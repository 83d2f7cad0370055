"""Publishes spans until standard input ends, then closes the client and prints its statistics as JSON.

Arguments: socket, service, spans per second, maximum number of kept bytes, max_age and max_backoff in ms.
"""

import json
import sys
import threading
import time

from spanstatsd_opentelemetry import TOP_LEVEL, Client, Config, Key

SLOT_SECONDS = 0.05


def main() -> None:
    path, service, rate, kept, max_age, max_backoff = sys.argv[1:]
    client = Client(
        {"service": service, "env": "kills"},
        Config(
            socket=path, name=service, max_buffer=32 << 20, max_kept=int(kept), max_age=int(max_age) / 1000,
            max_backoff=int(max_backoff) / 1000,
        ),
    )  # fmt: skip
    is_over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
    published: dict[str, int] = {}
    started = time.monotonic()
    offered = 0
    while not is_over.wait(0.01):
        since = time.monotonic() - started
        name = f"GET /s/{int(since / SLOT_SECONDS)}"
        keys = [
            Key({"service": service, "operation": "http.request", "resource": name, "type": "web", "kind": "server",
                 "http_status": status})
            for status in (200, 201, 202)
        ]  # fmt: skip
        now = time.time_ns()
        while offered < int(since * int(rate)):
            if client.publish(keys[offered % 3], 1_000_000 * (1 + offered % 1000), now, TOP_LEVEL):
                published[name] = published.get(name, 0) + 1
            offered += 1
    client.close(60)
    stats = client.stats()
    print(
        json.dumps(
            {
                "published": published,
                "ambiguous": stats.ambiguous,
                "died": stats.unconfirmed,
                "lost": sum(stats.lost.values()) + stats.buffered,
            }
        )
    )


main()
