package otlp

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
)

// TestHealth_ServerAndServices covers gRPC health checks of the entire server, and of each accepted service.
func TestHealth_ServerAndServices(t *testing.T) {
	to := newCollector(t, true, nil)
	forward := forwardTo(t, to.url())
	const services = "opentelemetry.proto.collector."
	for _, isForwarding := range []bool{false, true} {
		h := newHarness(t, func(c *Config, a *aggregate.Config) {
			if isForwarding {
				forward(c, a)
			}
		})
		client := h.client(true)
		ask := func(path string, body []byte, header ...string) answered {
			return send(t, client, http.MethodPost, path, bytes.NewReader(body),
				append([]string{"Content-Type", mediaGRPC, "Te", "trailers"}, header...)...)
		}
		for service, want := range map[string]string{
			"": "0", services + "trace.v1.TraceService": "0", "trace.v1.TraceService": "5", "x": "5",
			"grpc.health.v1.Health":                "5",
			services + "metrics.v1.MetricsService": "0",
			services + "logs.v1.LogsService":       "0",
		} {
			message := nested(nil, 1, []byte(service))
			for _, a := range []answered{
				ask("/grpc.health.v1.Health/Check", framed(message, false)),
				ask("/grpc.health.v1.Health/Check", framed(zstded(message), true), headerGRPCEncoding,
					"zstd"),
			} {
				if isFound := want == "0"; a.grpc != want ||
					isFound != bytes.Equal(a.body, framed([]byte{8, 1}, false)) {
					t.Errorf("%q, forwarding %v: answered %+v, want %s", service, isForwarding, a, want)
				}
			}
		}
		if a := ask("/grpc.health.v1.Health/Check", framed(nil, false)); a.grpc != "0" {
			t.Errorf("a check of nothing is answered %+v", a)
		}
		for _, a := range []answered{
			ask("/grpc.health.v1.Health/Watch", framed(nil, false)),
			ask("/grpc.health.v1.Health/List", framed(nil, false)),
			ask("/grpc.health.v1.Health/Check", framed(nil, true), headerGRPCEncoding, "br"),
		} {
			if a.grpc != "12" {
				t.Errorf("what is not there is answered %+v", a)
			}
		}
		if a := ask("/grpc.health.v1.Health/Check", []byte{0}); a.grpc != "3" {
			t.Errorf("no message is answered %+v", a)
		}
		if a := send(t, h.client(false), http.MethodPost, "/grpc.health.v1.Health/Check",
			strings.NewReader("{}"), "Content-Type", mediaJSON); a.status != http.StatusUnsupportedMediaType {
			t.Errorf("a check by HTTP is answered %+v", a)
		}
		if got := h.Stats().Requests; got["other"] != 15 || got["refused"] != 4 || got["unparsable"] != 1 ||
			to.last().path != "" {
			t.Errorf("requests %v; %q went on", got, to.last().path)
		}
	}
}

// TestHealth_NotServingDuringShutdown covers a health check during shutdown.
func TestHealth_NotServingDuringShutdown(t *testing.T) {
	h := newHarness(t, nil)
	r := h.NewRequest(httptest.NewRequest(http.MethodPost, healthPath, nil))
	r.Body = &bodies.Body{Bytes: framed(nil, false)}
	h.stop()
	w := httptest.NewRecorder()
	c := healthCheck{&call{BufferedRequest: r, server: h.Server, signal: signalHealth, encoding: encodingGRPC}}
	if err := c.Handle(nil)(w); err != nil || !bytes.Equal(w.Body.Bytes(), framed([]byte{8, 2}, false)) {
		t.Errorf("answered %x, %v", w.Body, err)
	}
}
