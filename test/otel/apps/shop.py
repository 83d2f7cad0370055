# A small Flask application without OpenTelemetry code: opentelemetry-instrument starts it. It shuts
# down gracefully when its standard input ends.
import os
import sys
import threading

import flask
import requests
from werkzeug.serving import make_server

app = flask.Flask(__name__)
STATUS = [200, 200, 201, 404, 500]


@app.get("/orders/<int:number>")
def order(number):
    answer = requests.get("%s/stock/%d" % (os.environ["STOCK_URL"], number))
    return "", answer.status_code


@app.get("/stock/<int:number>")
def stock(number):
    return "", STATUS[number % 5]


server = make_server("127.0.0.1", 0, app, threaded=True)
threading.Thread(target=server.serve_forever).start()
print("listening on %d" % server.server_port, flush=True)
sys.stdin.read()
server.shutdown()
