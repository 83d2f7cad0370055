package main

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"testing"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/tinylib/msgp/msgp"
	"google.golang.org/protobuf/proto"
)

// send sends a body like the agent.
func send(t *testing.T, b *backend, path string, body []byte) {
	t.Helper()
	var packed bytes.Buffer
	pack := gzip.NewWriter(&packed)
	if _, err := pack.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := pack.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, &packed)
	r.Header.Set("Content-Encoding", "gzip")
	b.ServeHTTP(httptest.NewRecorder(), r)
}

func statistics(t *testing.T, groups ...*pb.ClientGroupedStats) []byte {
	t.Helper()
	var body bytes.Buffer
	of := &pb.ClientStatsPayload{Stats: []*pb.ClientStatsBucket{{Stats: groups}}}
	payload := pb.StatsPayload{Stats: []*pb.ClientStatsPayload{of}}
	if err := msgp.Encode(&body, &payload); err != nil {
		t.Fatal(err)
	}
	return body.Bytes()
}

func TestBackend_Counts(t *testing.T) {
	const yes, no = pb.Trilean_TRUE, pb.Trilean_FALSE
	var b backend
	body := statistics(
		t,
		&pb.ClientGroupedStats{
			Resource: "GET /named/orders/{id}", SpanKind: "server", IsTraceRoot: yes,
			Hits: 5,
		},
		&pb.ClientGroupedStats{Resource: "GET /named/pages/7", SpanKind: "server", IsTraceRoot: yes, Hits: 2},
		&pb.ClientGroupedStats{
			Resource: "GET /named/pages/{id}", SpanKind: "server", IsTraceRoot: yes,
			Hits: 3,
		},
		&pb.ClientGroupedStats{Resource: "GET /pages/8", SpanKind: "server", IsTraceRoot: yes, Hits: 11},
		&pb.ClientGroupedStats{
			Resource: "tracer_blocked_value", SpanKind: "server", IsTraceRoot: yes,
			Hits: 13,
		},
		&pb.ClientGroupedStats{Resource: "SELECT", SpanKind: "client", IsTraceRoot: no, Hits: 100},
		&pb.ClientGroupedStats{Resource: "CREATE TABLE", SpanKind: "client", IsTraceRoot: yes, Hits: 1000},
	)
	send(t, &b, "/api/v0.2/stats", body)
	send(t, &b, "/api/v0.2/stats", body)
	traces, err := proto.Marshal(&pb.AgentPayload{TracerPayloads: []*pb.TracerPayload{
		{Chunks: []*pb.TraceChunk{{}, {}, {}}}, {Chunks: []*pb.TraceChunk{{}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	send(t, &b, "/api/v0.2/traces", traces)
	within := statistics(t, &pb.ClientGroupedStats{
		Resource: "find", SpanKind: "internal", IsTraceRoot: no,
		Hits: 4,
	})
	send(t, &b, "/api/v0.2/stats", within)
	b.ends = true
	send(t, &b, "/api/v0.2/stats", within)
	got, n, err := b.seen()
	if want := (counts{Hits: 272, Requests: 68, Named: 14, Masked: 6}); got != want || n != 4 || err != nil {
		t.Errorf("%+v, %d, %v", got, n, err)
	}
}

func TestBackend_ReportsUnreadable(t *testing.T) {
	for _, path := range []string{"/api/v0.2/stats", "/api/v0.2/traces"} {
		var b backend
		send(t, &b, path, []byte("no such thing"))
		if _, _, err := b.seen(); err == nil {
			t.Errorf("%s accepts an arbitrary body", path)
		}
		b = backend{}
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader([]byte("plain")))
		r.Header.Set("Content-Encoding", "gzip")
		b.ServeHTTP(httptest.NewRecorder(), r)
		if _, _, err := b.seen(); err == nil {
			t.Errorf("%s accepts an uncompressed body", path)
		}
	}
}
