# A small web application for the published ddtrace: a server span, a database call with occasional
# errors, and internal work.
import os
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ddtrace.trace import tracer


class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        with tracer.trace("http.request", resource="GET " + self.path, span_type="web") as span:
            span.set_tag("span.kind", "server")
            status = 200
            with tracer.trace("postgres.query", service="shop-db", resource="orders of " + self.path, span_type="db") as query:
                query.set_tag("span.kind", "client")
                query.set_tag("out.host", "10.1.2.3:5432")
                query.set_tag("db.name", "orders")
                if self.path.endswith("3"):
                    query.error = 1
                    status = 500
            with tracer.trace("render"):
                pass
            span.set_tag("http.status_code", str(status))
        self.send_response(status)
        self.end_headers()

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
threading.Thread(target=server.serve_forever, daemon=True).start()


def user(number, each):
    for i in range(each):
        try:
            urllib.request.urlopen("http://127.0.0.1:%d/order/%d" % (server.server_port, (number + i) % 5)).read()
        except urllib.error.HTTPError:
            pass


def load(each):
    users = [threading.Thread(target=user, args=(number, each)) for number in range(4)]
    for u in users:
        u.start()
    for u in users:
        u.join()


# measure prints the cost of a request for this process after a warm-up.
def measure(each):
    load(each)
    before = time.process_time()
    load(each)
    print("cpu us a request:", (time.process_time() - before) * 1e6 / (4 * each), flush=True)
    os._exit(0)


# odd creates a span per line of a file, with tags as key=value and numbers as key#=value.
def odd(file):
    with tracer.trace("odd.all", service="shop"):
        for row, line in enumerate(open(file)):
            tags = dict(tag.split("=", 1) for tag in line.strip("\n").split("\t"))
            with tracer.trace("odd", resource="row %d" % row, service=tags.pop("service", "shop"), span_type=tags.pop("type", None)) as span:
                for key, value in tags.items():
                    if key.endswith("#"):
                        span.set_tag(key[:-1], float(value))
                    else:
                        span.set_tag(key, value)


if "SHOP_MEASURE" in os.environ:
    measure(int(os.environ["SHOP_MEASURE"]))
load(50)
if "SHOP_ODD" in os.environ:
    odd(os.environ["SHOP_ODD"])
server.shutdown()
tracer.shutdown()
