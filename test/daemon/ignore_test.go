package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
	"github.com/vmihailenco/msgpack/v5"
)

// post sends a request to a socket and expects a status below 300.
func post(t *testing.T, socket, path, contentType string, body []byte) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest(http.MethodPost, "http://receiver"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Datadog-Trace-Count", "1") // as every tracer sends
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s: %s", path, resp.Status)
	}
}

// TestReceivers_IgnoreSameSpans sends each receiver a span ignored by name, one ignored by
// attribute, and one to count.
func TestReceivers_IgnoreSameSpans(t *testing.T) {
	list, err := ignore.Parse([]string{"resource=GET /healthz", "attribute.url.path=~^/static/"})
	if err != nil {
		t.Fatal(err)
	}
	var apm, otlp, zipkin string
	p := startPair(t, func(c *daemon.Config) {
		c.Admit.Ignore, c.APM.Labels.Ignore = list, list
		c.OTLP.Labels.Ignore, c.Zipkin.Labels.Ignore = list, list
		socket := c.Ingest.Socket.Path
		apm, otlp, zipkin = socket+"a", socket+"o", socket+"z"
		c.APM.Socket.Path, c.OTLP.Socket.Path, c.Zipkin.Socket.Path = apm, otlp, zipkin
	})

	native := p.client("own")
	spans := batch(3, "GET /own")
	spans[0].Key.Resource = "GET /healthz"
	spans[1].Key.PeerTags = []string{"url.path:/static/x"}
	if !native.Publish(spans) || native.Close(t.Context()) != nil {
		t.Fatal("the client lost its spans")
	}

	start := time.Now().Add(-time.Second).UnixNano()
	var trace []map[string]any
	for i, resource := range []string{"GET /healthz", "GET /x", "GET /apm"} {
		s := map[string]any{
			"service": "apm", "name": "web", "resource": resource, "trace_id": 7, "span_id": 10 + i,
			"parent_id": i,
			"start":     start,
			"duration":  1000,
			"metrics":   map[string]float64{"_dd.measured": 1},
		}
		if i == 1 {
			s["meta"] = map[string]string{"url.path": "/static/x"}
		}
		trace = append(trace, s)
	}
	body, err := msgpack.Marshal([][]map[string]any{trace})
	if err != nil {
		t.Fatal(err)
	}
	post(t, apm, "/v0.4/traces", "application/msgpack", body)

	const static = `[{"key":"url.path","value":{"stringValue":"/static/x"}}]`
	var all string
	for i, s := range [][2]string{{"GET /healthz", "[]"}, {"GET /x", static}, {"GET /otlp", "[]"}} {
		all += fmt.Sprintf(`,{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"000000000000001%d","name":%q,`+
			`"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":%s}`, i, s[0], start, start+1000, s[1])
	}
	post(t, otlp, "/v1/traces", "application/json",
		[]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[`+all[1:]+`]}]}]}`))

	post(t, zipkin, "/api/v2/spans", "application/json", fmt.Appendf(nil, `[
		{"traceId":"0000000000000001","id":"0000000000000001","name":"GET /healthz","timestamp":%[1]d,"duration":9},
		{"traceId":"0000000000000001","id":"0000000000000002","name":"GET /x","timestamp":%[1]d,"duration":9,
		 "tags":{"url.path":"/static/x"}},
		{"traceId":"0000000000000001","id":"0000000000000003","name":"GET /zipkin","timestamp":%[1]d,"duration":9}]`,
		start/1000))
	p.stop()

	accounting := p.Daemon.Accounting()
	if accounting.Received != 12 || accounting.Dropped["ignored"] != 8 || accounting.Flushed != 4 || !accounting.Balanced {
		t.Errorf("%+v", accounting)
	}
	totals := p.agent.Totals()
	hits := map[string]uint64{}
	for i := range totals.Rows {
		hits[totals.Rows[i].Resource] += totals.Rows[i].Hits
	}
	for _, resource := range []string{"GET /own", "GET /apm", "GET /otlp", "get /zipkin", "GET /zipkin"} {
		delete(hits, resource)
	}
	if len(hits) != 0 || totals.Hits != 4 {
		t.Errorf("%d hits arrived, and of others %v", totals.Hits, hits)
	}
}
