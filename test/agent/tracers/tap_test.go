//go:build languages

package tracers

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
)

// sent is the data sent by a tracer to its agent.
type sent struct {
	spans      map[int]sentSpan // by the number assigned by the interceptor
	traces     int
	statistics int            // spans in client-computed statistics
	dropped    int            // spans reported as dropped in a header
	marks      map[string]int // number of trace requests by the value of Datadog-Client-Computed-Stats
}

// sentSpan is a span and the priority of its trace.
type sentSpan struct {
	*pb.Span
	priority float64
}

// tap is a proxy between a tracer and its agent for the v0.4 trace format.
type tap struct {
	socket string
	server *http.Server
	mu     sync.Mutex
	sent   sent
	failed error // first error
}

func startTap(t *testing.T, agent string) *tap {
	t.Helper()
	p := &tap{
		socket: filepath.Join(t.TempDir(), "tap.sock"),
		sent:   sent{spans: map[int]sentSpan{}, marks: map[string]int{}},
	}
	listener, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(agent)
	p.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			p.fail(err)
			return
		}
		p.look(r, body)
		forwardRequest(w, r, body, client, p.fail)
	})}
	go p.server.Serve(listener)
	t.Cleanup(func() { p.server.Close(); client.CloseIdleConnections() })
	return p
}

// forwardRequest forwards a request and returns the agent's response.
func forwardRequest(w http.ResponseWriter, r *http.Request, body []byte, client *http.Client, fail func(error)) {
	request, err := http.NewRequest(r.Method, "http://localhost"+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		fail(err)
		return
	}
	request.Header = r.Header.Clone()
	answer, err := client.Do(request)
	if err != nil {
		fail(err)
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// look reads the content of a request.
func (p *tap) look(r *http.Request, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.URL.Path == "/v0.6/stats":
		var payload pb.ClientStatsPayload
		_, err := payload.UnmarshalMsg(body)
		p.note(err)
		for _, bucket := range payload.Stats {
			for _, g := range bucket.Stats {
				p.sent.statistics += int(g.Hits)
			}
		}
	case strings.HasSuffix(r.URL.Path, "/traces"):
		var traces pb.Traces
		_, err := traces.UnmarshalMsg(body)
		p.note(err)
		if len(traces) == 0 {
			return // the tracer is probing the path
		}
		dropped, err := strconv.Atoi(r.Header.Get("Datadog-Client-Dropped-P0-Spans"))
		p.note(err)
		p.sent.dropped += dropped
		p.sent.marks[r.Header.Get("Datadog-Client-Computed-Stats")]++
		for _, trace := range traces {
			p.sent.add(trace)
		}
	}
}

func (s *sent) add(trace pb.Trace) {
	s.traces++
	priority := 0.0
	for _, span := range trace {
		if says, is := span.Metrics["_sampling_priority_v1"]; is {
			priority = says
		}
	}
	for _, span := range trace {
		if row, is := span.Metrics["seen.row"]; is {
			s.spans[int(row)] = sentSpan{span, priority}
		}
	}
}

func (p *tap) note(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

func (p *tap) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(err)
}

// stop stops the tap and returns the data sent by the tracer.
func (p *tap) stop(t *testing.T) sent {
	t.Helper()
	p.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		t.Errorf("read what the tracer sent: %v", p.failed)
	}
	return p.sent
}
