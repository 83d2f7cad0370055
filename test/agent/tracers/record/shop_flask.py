# The application of goshop.go with ddtrace and its integrations for Flask, sqlite3 and requests:
# sixteen routes, each requested six times.
import ddtrace.auto  # noqa: F401 - before what it traces

import sqlite3
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from ddtrace.trace import tracer
from flask import Flask
from werkzeug.serving import WSGIRequestHandler, make_server


class Stock(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"3")

    def log_message(self, *args):
        pass


stock = ThreadingHTTPServer(("127.0.0.1", 0), Stock)
threading.Thread(target=stock.serve_forever, daemon=True).start()

app = Flask("shop")
names = [a + b for b in ("", "/history", "/price", "/photo") for a in ("orders", "carts", "products", "customers")]


def page(name):
    table = name.split("/")[0]

    def serve(number):
        db = sqlite3.connect(":memory:")
        db.execute("CREATE TABLE %s (id, state)" % table).close()
        db.execute("SELECT state FROM %s WHERE id = ?" % table, (number,)).fetchall()
        requests.get("http://127.0.0.1:%d/%s" % (stock.server_port, table))
        with tracer.trace("template.render", resource=table + ".html"):
            return ("no such thing", 404) if number % 10 == 7 else "a page"

    return serve


for name in names:
    app.add_url_rule("/%s/<int:number>" % name, name, page(name))



class Quiet(WSGIRequestHandler):
    def log(self, *args):
        pass


server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
for i in range(6 * len(names)):
    try:
        url = "http://127.0.0.1:%d/%s/%d" % (server.server_port, names[i % len(names)], i)
        urllib.request.urlopen(url).read()
    except urllib.error.HTTPError:
        pass
server.shutdown()
stock.shutdown()
tracer.shutdown()
