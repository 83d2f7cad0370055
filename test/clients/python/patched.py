"""Publishes spans with a client that was created before gevent's patches, as by opentelemetry-instrument."""

import sys
import time

from spanstatsd_opentelemetry import Client, Config, Key

client = Client({"service": "shop"}, Config(socket=sys.argv[1]))

from gevent import monkey  # noqa: E402

monkey.patch_all()

key = Key({"service": "shop", "operation": "job", "resource": "job"})
for _ in range(100):
    client.publish(key, 1_500_000, time.time_ns())
sys.exit(0 if client.close() and client.stats().sent == 100 else 1)
