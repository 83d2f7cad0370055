# The Python application of the benchmark: Flask on waitress with an in-memory database. With an agent,
# ddtrace creates a dozen Flask spans, two queries, and one span of the application.
import contextlib
import os

tracer = None
if "DD_TRACE_AGENT_URL" in os.environ:
    import ddtrace.auto  # noqa: F401 - before what it traces
    from ddtrace.trace import tracer

import signal
import sqlite3
import sys
import threading

from flask import Flask, request
from waitress import serve

ORDERS = 1000
app = Flask("shop")
local = threading.local()


def database():
    if not hasattr(local, "database"):
        local.database = sqlite3.connect("file:shop?mode=memory&cache=shared", uri=True)
    return local.database


kept = database()  # the database lives as long as one connection does
kept.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer)")
kept.execute("CREATE TABLE items (number, name, price)")
kept.execute("CREATE INDEX items_of ON items (number)")
kept.executemany("INSERT INTO orders VALUES (?, ?)", [(i, "customer %d" % i) for i in range(ORDERS)])
kept.executemany("INSERT INTO items VALUES (?, ?, ?)", [(i // 8, "item %d" % (i % 8), i * 100) for i in range(8 * ORDERS)])
kept.commit()


def find(number):
    with tracer.trace("shop.find") if tracer else contextlib.nullcontext():
        order = database().execute("SELECT customer FROM orders WHERE id = ?", (number % ORDERS,)).fetchall()
        items = database().execute("SELECT name, price FROM items WHERE number = ?", (number % ORDERS,)).fetchall()
    return {"order": order, "items": items, "id": number}


@app.get("/orders/<int:number>")
@app.get("/named/orders/<int:number>")
def stable(number):
    return find(number)


# Names each request by its path, like badly instrumented applications.
@app.get("/pages/<int:number>")
@app.get("/named/pages/<int:number>")
def many(number):
    if tracer:
        tracer.current_root_span().resource = "GET " + request.path
    return find(number)


signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # in order, so that ddtrace sends all
serve(app, host="127.0.0.1", port=int(sys.argv[1]), threads=8)
