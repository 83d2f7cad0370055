"""Reports spans by py_zipkin: report.py URL ENCODING REQUESTS. Each request is a client's span of the
service front, and a server's span of the service cart within it, every tenth with an error."""
import sys
import urllib.request

from py_zipkin import Encoding, Kind
from py_zipkin.transport import BaseTransportHandler
from py_zipkin.zipkin import zipkin_client_span, zipkin_server_span

url, encoding, requests = sys.argv[1], sys.argv[2], int(sys.argv[3])
encoding = {"json": Encoding.V2_JSON, "protobuf": Encoding.V2_PROTO3}[encoding]
media = {Encoding.V2_JSON: "application/json", Encoding.V2_PROTO3: "application/x-protobuf"}[encoding]


class Transport(BaseTransportHandler):
    def get_max_payload_bytes(self):
        return None

    def send(self, payload):
        if isinstance(payload, str):
            payload = payload.encode()
        request = urllib.request.Request(url, payload, {"Content-Type": media})
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 202 and answer.read() == b"", answer.status


for n in range(requests):
    with zipkin_client_span(
        service_name="front", span_name="get cart", transport_handler=Transport(), encoding=encoding,
        sample_rate=100, port=80,
    ) as client:
        client.add_sa_binary_annotation(port=8080, service_name="cart", host="127.0.0.1")
        client.update_binary_annotations({"http.method": "GET", "http.status_code": "200"})
        with zipkin_server_span(
            service_name="cart", span_name="get /cart/{id}", transport_handler=Transport(),
            encoding=encoding, sample_rate=100, port=8080,
        ) as server:
            server.update_binary_annotations({"http.route": "/cart/{id}", "http.method": "GET"})
            if n % 10 == 0:
                server.update_binary_annotations({"error": "no \"cart\"\n"})
