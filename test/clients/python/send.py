"""Sends three batches and a long key, one after the other, with a client of the native protocol."""

import sys
import time

from spanstatsd_opentelemetry import ERROR, TOP_LEVEL, Client, Config, Key

client = Client({"service": "shop", "env": "test", "lang": "python"}, Config(socket=sys.argv[1], max_age=0.05))
keys = [
    Key({"service": "shop", "operation": "http.server.request", "resource": f"GET /{i}", "type": "web", "kind": "server"})
    for i in range(20)
]
for _ in range(5):
    for key in keys:
        client.publish(key, 1_500_000, time.time_ns(), TOP_LEVEL)
    client.publish(keys[0], 5_000_000_000, time.time_ns(), ERROR | TOP_LEVEL)
    time.sleep(0.3)
is_flushed = client.flush(10)
client.publish(keys[0], 1, time.time_ns())
is_closed = client.close()
stats = client.stats()
print(stats)
sys.exit(0 if is_flushed and is_closed and stats.published == stats.sent == 106 and not stats.unsettled else 1)
