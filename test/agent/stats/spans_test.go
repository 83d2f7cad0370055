package stats

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/traceutil/normalize"
	"github.com/spanstatsd/spanstatsd/client"
)

// The spans of these tests are generated in two forms at once: as the agent reads them in a trace,
// where a fact can be in several places, and as the snapshot that a tracer publishes, which contains
// the fact itself. Neither form is derived from the other, so a wrong rule can't affect both in the
// same way.

// origin is the sender of the spans on both paths.
var origin = client.Origin{
	Host: "node-1", Env: "Prod Eu", Version: "1.2.3", Service: "shop", Lang: "go", LangVersion: "1.26",
	LangInterpreter: "gc", TracerVersion: "2.12.0", ContainerID: "cid-1", ProcessTags: "entrypoint.name:shop",
	GitCommitSHA: "0123abc",
}

// made is a set of spans in both forms.
type made struct {
	traces    pb.Traces
	snapshots []client.Snapshot // of the eligible spans
	spans     int
}

// makeSpans generates traces whose spans end at about the given time.
func makeSpans(r *rand.Rand, traces int, now time.Time) *made {
	m := &made{}
	for range traces {
		m.trace(r, now)
	}
	return m
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// trace generates one trace: a tree in which each span's parent is an earlier span.
func (m *made) trace(r *rand.Rand, now time.Time) {
	id := r.Uint64() >> 1
	rate := pick(r, 1.0, 1, 1, 0.5, 0.25)
	synthetic := r.IntN(8) == 0
	var trace pb.Trace
	for i := range 1 + r.IntN(5) {
		s := newSpan(r, now)
		s.raw.TraceID, s.raw.SpanID = id, id+uint64(i)+1
		if isLocalRoot := s.place(r, trace); isLocalRoot {
			s.root(rate, synthetic) // the agent may take any of these spans as the trace's root
		}
		trace = append(trace, s.raw)
		s.snapshot.Weight, s.snapshot.Key.Synthetics = 1/rate, synthetic
		m.spans++
		if s.eligible() {
			m.snapshots = append(m.snapshots, s.snapshot)
		}
	}
	m.traces = append(m.traces, trace)
}

// span is one span in both forms.
type span struct {
	raw      *pb.Span
	snapshot client.Snapshot
	measured bool
	partial  bool
	byKind   bool // eligible by its kind alone
}

func newSpan(r *rand.Rand, now time.Time) *span {
	s := &span{raw: &pb.Span{Meta: map[string]string{}, Metrics: map[string]float64{}}}
	s.names(r)
	s.when(r, now)
	for _, add := range []func(*rand.Rand){s.kind, s.httpStatus, s.grpcStatus, s.marks} {
		add(r)
	}
	return s
}

func (s *span) names(r *rand.Rand) {
	k := &s.snapshot.Key
	k.Service = pick(r, "shop", "cart-db", "Web Store", "s+1h", "caf\u00e9", "a/b:c.d", "", "__x__", "日本")
	k.Operation = pick(r, "http.request", "sql query", "", "9lives", "a..b", "a_.b", "Über.op",
		"grpc.server/call")
	k.Type, k.Resource = pick(r, "", "web", "custom"), pick(r, "GET /cart", "GET /cart/{id}", "", "日本 語", "x")
	switch r.IntN(6) {
	case 0: // the agent merges these, long after they were counted separately
		k.Type, k.Resource = "sql", "SELECT * FROM carts WHERE id = "+strconv.Itoa(r.IntN(20))
	case 1:
		k.Type, k.Resource = "redis", "GET cart:"+strconv.Itoa(r.IntN(20))
	}
	if r.IntN(10) == 0 { // names that tracers should not send but sometimes do
		label := pick(r, &k.Service, &k.Operation, &k.Resource, &k.Type)
		*label = pick(r, strings.Repeat("long name ", 12), strings.Repeat("\u00e9", 70),
			strings.Repeat("日本", 900),
			"caf\xe9 \xff", "\x00", " ", "\u2028", "a\nb", "%s", "DROP TABLE", "\ufffd", "1.2.3.4", "___",
			"a-b/c", "ÀÉ", "İx")
	}
	s.raw.Service, s.raw.Name, s.raw.Resource, s.raw.Type = k.Service, k.Operation, k.Resource, k.Type
}

// when sets a duration of a random order of magnitude and an end within, before or after the window.
func (s *span) when(r *rand.Rand, now time.Time) {
	length := time.Duration(math.Exp2(40 * r.Float64()))
	if r.IntN(20) == 0 {
		length = time.Duration(r.IntN(3))
	}
	end := now.Add(pick(r, 0, 0, 0, -time.Millisecond, -time.Second, -9*time.Second, -10*time.Second,
		-25*time.Second, -time.Hour, time.Hour))
	s.snapshot.Duration, s.snapshot.End = length, end
	s.raw.Start, s.raw.Duration = end.Add(-length).UnixNano(), int64(length)
	if r.IntN(5) == 0 {
		s.snapshot.Error, s.raw.Error = true, 1
	}
}

func (s *span) kind(r *rand.Rand) {
	kind := pick(r, "", "internal", "server", "client", "producer", "consumer")
	s.snapshot.Key.Kind = kind
	if kind != "" {
		s.raw.Meta["span.kind"] = kind
	} else {
		s.snapshot.Key.Kind = "internal" // what the agent makes of a trace's span without one
	}
	base := r.IntN(4) == 0
	if base {
		s.raw.Meta["_dd.base_service"] = "shop"
	}
	peers := [][3]string{
		{"db.name", "carts", "carts"},
		{"peer.service", "cart-db", "cart-db"},
		{"out.host", "10.1.2.3:5432", "blocked-ip-address:5432"},
		{"net.peer.name", "localhost", "localhost"},
		{"peer.hostname", "ip-10-0-0-1", "ip-blocked-ip-address"},
	}
	for _, tag := range peers {
		if r.IntN(3) > 0 {
			continue
		}
		s.raw.Meta[tag[0]] = tag[1]
		if kind == "client" || kind == "producer" || kind == "consumer" {
			s.peer(tag[0], tag[2])
		}
	}
	if base && kind != "server" {
		s.peer("_dd.base_service", "shop")
	}
	s.byKind = kind != "" && kind != "internal"
}

func (s *span) peer(name, value string) {
	s.snapshot.Key.PeerTags = append(s.snapshot.Key.PeerTags, name+":"+value)
}

func (s *span) httpStatus(r *rand.Rand) {
	status := pick(r, 0, 0, 200, 404, 503)
	s.snapshot.Key.HTTPStatus = uint32(status)
	if status == 0 {
		return
	}
	switch r.IntN(3) {
	case 0:
		s.raw.Meta["http.status_code"] = strconv.Itoa(status)
	case 1:
		s.raw.Metrics["http.status_code"] = float64(status)
	default:
		s.raw.Meta["http.response.status_code"] = strconv.Itoa(status)
	}
}

func (s *span) grpcStatus(r *rand.Rand) {
	if r.IntN(4) > 0 {
		return
	}
	code := pick(r, [2]string{"0", "0"}, [2]string{"OK", "0"}, [2]string{"StatusCode.UNAVAILABLE", "14"},
		[2]string{"cancelled", "1"}, [2]string{"DEADLINE_EXCEEDED", "4"}, [2]string{"no such", ""})
	s.snapshot.Key.GRPCStatus = code[1]
	s.raw.Meta[pick(r, "rpc.grpc.status_code", "grpc.code", "grpc.status.code")] = code[0]
}

// marks sets the facts that are not labels.
func (s *span) marks(r *rand.Rand) {
	if r.IntN(4) == 0 {
		s.snapshot.Key.ServiceSource = "m"
		s.raw.Meta["_dd.svc_src"] = "m"
	}
	if s.measured = r.IntN(4) == 0; s.measured {
		s.raw.Metrics["_dd.measured"] = 1
	}
	if s.partial = r.IntN(20) == 0; s.partial {
		s.raw.Metrics["_dd.partial_version"] = float64(r.IntN(3))
	}
}

// place sets the parent to a span of the trace or of another process.
func (s *span) place(r *rand.Rand, trace pb.Trace) (isLocalRoot bool) {
	s.snapshot.Key.TraceRoot = client.TraceRootFalse
	switch {
	case len(trace) == 0 && r.IntN(3) > 0:
		s.snapshot.Key.TraceRoot = client.TraceRootTrue
		s.snapshot.TopLevel = true
	case len(trace) == 0 || r.IntN(5) == 0:
		s.raw.ParentID = 1<<63 + r.Uint64()>>2
		s.snapshot.TopLevel = true
	default:
		parent := trace[r.IntN(len(trace))]
		s.raw.ParentID = parent.SpanID
		s.snapshot.TopLevel = service(parent) != service(s.raw)
		return false
	}
	return true
}

// service returns a span's service after the agent's normalization, which happens before comparisons.
func service(s *pb.Span) string {
	name, _ := normalize.NormalizeService(s.Service, origin.Lang) // the error only describes the normalization
	return name
}

// root sets the facts that a trace's first span contains for the complete trace.
func (s *span) root(rate float64, synthetic bool) {
	for name, value := range map[string]string{
		"env": origin.Env, "version": origin.Version, "_dd.hostname": origin.Host,
		"_dd.git.commit.sha": origin.GitCommitSHA,
	} {
		s.raw.Meta[name] = value
	}
	s.raw.Metrics["_sample_rate"] = rate
	s.raw.Metrics["_sampling_priority_v1"] = 1
	if synthetic {
		s.raw.Meta["_dd.origin"] = "synthetics-browser"
	}
}

// eligible reports whether the span has statistics.
func (s *span) eligible() bool {
	return (s.snapshot.TopLevel || s.measured || s.byKind) && !s.partial
}
