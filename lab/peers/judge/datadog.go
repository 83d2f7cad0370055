package main

import (
	"bytes"
	"fmt"
	"net/http"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/tinylib/msgp/msgp"
)

// encodeDatadog encodes a request for /v0.4/traces, with each span as a trace.
func encodeDatadog(r request) ([]byte, error) {
	traces := make(pb.Traces, len(r.spans))
	for i, s := range r.spans {
		one := &pb.Span{
			Service: s.service, Name: "http.request", Resource: s.spanName.span, Type: "web",
			TraceID: s.id, SpanID: s.id, Start: s.end.Add(-s.duration).UnixNano(), Duration: int64(s.duration),
			Meta:    map[string]string{"span.kind": "server"},
			Metrics: map[string]float64{"_top_level": 1, "_sampling_priority_v1": 1},
		}
		if r.weight > 1 {
			one.Metrics["_sample_rate"] = 1 / float64(r.weight)
		}
		if !s.isUnique {
			one.Meta["http.method"], one.Meta["http.status_code"] = "GET", "200"
			one.Meta["http.route"] = s.spanName.span[len("GET "):]
		}
		traces[i] = pb.Trace{one}
	}
	return traces.MarshalMsg(nil)
}

// datadogBackend is an output that stands for Datadog's servers: it receives the statistics of an agent.
type datadogBackend struct {
	listener
	ledger *ledger
}

func startDatadogBackend(l *ledger) (*datadogBackend, error) {
	b := &datadogBackend{ledger: l}
	return b, b.listen(http.HandlerFunc(b.receive))
}

func (b *datadogBackend) receive(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err == nil && r.URL.Path == "/api/v0.2/stats" {
		err = b.count(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (b *datadogBackend) count(body []byte) error {
	var payload pb.StatsPayload
	if err := payload.DecodeMsg(msgp.NewReader(bytes.NewReader(body))); err != nil {
		return fmt.Errorf("decode statistics: %w", err)
	}
	hits := counts{}
	for _, client := range payload.Stats {
		for _, bucket := range client.Stats {
			for _, group := range bucket.Stats {
				hits[spanName{group.Service, group.Resource}] += float64(group.Hits)
			}
		}
	}
	b.ledger.add(hits)
	return nil
}
