package traces

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/DataDog/datadog-agent/pkg/obfuscate"
	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/DataDog/datadog-agent/pkg/trace/traceutil"
	"github.com/spanstatsd/spanstatsd/client/rules"
)

// pick returns one of the values at random.
func pick[T any](rnd *rand.Rand, of ...T) T { return of[rnd.IntN(len(of))] }

// peerKeys are some of the agent's peer tags, in its order.
var peerKeys = []string{"_dd.base_service", "db.name", "out.host", "peer.hostname", "peer.service"}

func randomHost(rnd *rand.Rand) string {
	octet := func() string { return fmt.Sprint(rnd.IntN(pick(rnd, 10, 256, 300))) }
	separator := pick(rnd, ".", ".", "-", "_")
	host := pick(rnd, "", "ip-", "http://", "https://", "ftp:///", "dnspoll:///", "x-https://", "[", ":",
		"a") +
		pick(rnd,
			strings.Join([]string{octet(), octet(), octet(), octet()}, separator),
			strings.Join([]string{octet(), octet(), octet()}, separator),
			"127.0.0.1", "169.254.169.254", "::1", "fe80::1", "2001:db8::8a2e:370:7334", "fe80::1%eth0",
			"db.example.com", "d.b", "", "abc", "0"+octet()) +
		pick(rnd, "", "", "]", ":80", "]:443", ".internal", ".5.6", ":", ":[80", "/path", "-x")
	if rnd.IntN(4) == 0 {
		return host + "," + randomHost(rnd)
	}
	return host
}

func randomText(rnd *rand.Rand) string {
	return pick(rnd, "", "0", "1", "1.0", "200", "404", "404.0", "99", "600", "+200", "0200", "-1", "1e2",
		"4294967296", "abc",
		"OK", "ok", "Canceled", "CANCELLED", "StatusCode.NOT_FOUND", "StatusCode.NotFound",
		"DeadlineExceeded", "StatusCode.", "Unavailable", "17", "grpc", "http")
}

func randomNumber(rnd *rand.Rand) float64 {
	return pick(rnd, 0, 1, -1, 2, 0.5, 200, 404, 404.5, 99, 600, 4294967295, 4294967296, math.Copysign(0, -1),
		1e300, math.Inf(1), math.NaN())
}

// statusTags are the tags that can contain an HTTP status.
var statusTags = append([]string{rules.TagHTTPStatus, rules.TagOTelHTTPStatus}, rules.GRPCStatusTags[:]...)

// randomSpan returns a span that sometimes has each of the tags that the rules read.
func randomSpan(rnd *rand.Rand) *pb.Span {
	s := &pb.Span{
		Service: "shop", Name: "web.request", Resource: "GET /", Type: "web",
		ParentID: rnd.Uint64N(2), Start: time.Now().UnixNano(), Duration: 1e6,
		Meta: map[string]string{}, Metrics: map[string]float64{},
	}
	maybe := func(odds int, set func()) {
		if rnd.IntN(odds) == 0 {
			set()
		}
	}
	for _, key := range []string{
		rules.TagTopLevel, rules.TagTracerTopLevel, rules.TagMeasured,
		rules.TagPartialVersion,
	} {
		maybe(4, func() { s.Metrics[key] = randomNumber(rnd) })
		maybe(9, func() { s.Meta[key] = randomText(rnd) })
	}
	maybe(2, func() {
		s.Meta[rules.TagKind] = pick(rnd, "client", "server", "Client", "PRODUCER", "consumer", "internal",
			"Internal", "other", "", "ſerver")
	})
	for _, key := range statusTags {
		maybe(5, func() { s.Meta[key] = randomText(rnd) })
		maybe(5, func() { s.Metrics[key] = randomNumber(rnd) })
	}
	maybe(3, func() { s.Meta[rules.TagRPCSystemName] = pick(rnd, "grpc", "http", "") })
	maybe(3, func() { s.Meta[rules.TagRPCSystem] = pick(rnd, "grpc", "http", "") })
	for _, key := range peerKeys {
		maybe(2, func() { s.Meta[key] = randomHost(rnd) })
	}
	return s
}

// counted returns the group that the agent makes of a span, or nil if the agent does not count the
// span.
func counted(t *testing.T, s *pb.Span, origin string) *pb.ClientGroupedStats {
	t.Helper()
	c := stats.NewSpanConcentrator(&stats.SpanConcentratorConfig{
		ComputeStatsBySpanKind: true,
		BucketInterval:         10e9,
	}, time.Now())
	statSpan, ok := c.NewStatSpanFromPB(s, peerKeys, nil)
	if !ok {
		return nil
	}
	c.AddSpan(statSpan, stats.PayloadAggregationKey{Env: "test"}, "", nil, origin)
	payloads := c.Flush(time.Now().UnixNano(), true)
	if len(payloads) != 1 || len(payloads[0].Stats) != 1 || len(payloads[0].Stats[0].Stats) != 1 {
		t.Fatalf("one span became %v", payloads)
	}
	return payloads[0].Stats[0].Stats[0]
}

// TestRules_SameAsAgent checks whether each span is counted, and each label.
func TestRules_SameAsAgent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 10))
	eligible := 0
	for range 30_000 {
		s := randomSpan(rnd)
		tags := rules.Maps{Meta: s.Meta, Metrics: s.Metrics}
		origin := pick(rnd, "", "synthetics", "synthetics-browser", "rum")
		group := counted(t, s, origin)
		if got := rules.Eligible(tags, rules.Kinds); got != (group != nil) {
			t.Fatalf("eligible %v, the agent says %v: %v", got, group != nil, s)
		}
		if group == nil {
			continue
		}
		eligible++
		peers := rules.PeerTags(nil, tags, peerKeys)
		slices.Sort(peers)
		switch {
		case rules.HTTPStatus(tags) != group.HTTPStatusCode:
			t.Fatalf("status %d, the agent has %d: %v", rules.HTTPStatus(tags), group.HTTPStatusCode, s)
		case rules.GRPCStatus(tags) != group.GRPCStatusCode:
			t.Fatalf("gRPC status %q, the agent has %q: %v", rules.GRPCStatus(tags), group.GRPCStatusCode, s)
		case !slices.Equal(peers, group.PeerTags):
			t.Fatalf("peer tags %q, the agent has %q: %v", peers, group.PeerTags, s)
		case rules.Synthetics(origin) != group.Synthetics:
			t.Fatalf("synthetics of %q: the agent says %v", origin, group.Synthetics)
		case rules.IsTopLevel(tags) != (group.TopLevelHits == 1):
			t.Fatalf("top-level hits %d: %v", group.TopLevelHits, s)
		}
	}
	if eligible < 5_000 {
		t.Fatalf("only %d spans were counted: the comparison has little coverage", eligible)
	}
}

// TestPeers_QuantizedLikeAgent checks lists of hosts, including long ones.
func TestPeers_QuantizedLikeAgent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	for range 200_000 {
		host := randomHost(rnd)
		if rnd.IntN(500) == 0 {
			for range 60 {
				host += "," + fmt.Sprintf("host-%d", rnd.IntN(50)) + "," + randomHost(rnd)
			}
		}
		if got, want := rules.QuantizePeer(host), obfuscate.QuantizePeerIPAddresses(host); got != want {
			t.Fatalf("%q became %q, the agent makes %q", host, got, want)
		}
	}
}

// TestTopLevel_SameAsAgent checks random traces, including incomplete ones.
func TestTopLevel_SameAsAgent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 12))
	for range 20_000 {
		n := 1 + rnd.IntN(pick(rnd, 4, 12, 60))
		trace := make(pb.Trace, n)
		links := make([]rules.Link, n)
		for i := range trace {
			links[i] = rules.Link{
				Span: 1 + rnd.Uint64N(uint64(2*n)), Parent: rnd.Uint64N(uint64(2 * n)),
				Service: pick(rnd, "a", "a", "b"),
			}
			trace[i] = &pb.Span{SpanID: links[i].Span, ParentID: links[i].Parent, Service: links[i].Service}
		}
		var spans rules.Spans
		spans.Reset(links)
		root := traceutil.GetRoot(trace)
		lost := 0 // number of spans with lost parents; the agent takes any of them as root
		for i := range links {
			if !slices.ContainsFunc(links, func(l rules.Link) bool { return l.Span == links[i].Parent }) {
				lost++
			}
		}
		if got := spans.Root(); trace[got] != root && (root.ParentID == 0 || lost < 2) {
			t.Fatalf("root %d is %v, the agent has %v of %v", got, trace[got], root, links)
		}
		traceutil.ComputeTopLevel(trace)
		for i, top := range rules.TopLevel(links) {
			if top != traceutil.HasTopLevel(trace[i]) {
				t.Fatalf("span %d of %v: %v", i, links, top)
			}
		}
	}
}
