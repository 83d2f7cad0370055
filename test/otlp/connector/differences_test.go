package connector

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// difference is a span that the connector deliberately counts differently from the daemon.
type difference struct {
	what         string // first column of the table in docs/semantics.md
	change       func(resource pcommon.Map, s ptrace.Span)
	theirs, ours string
}

// attributed returns a function that sets a span attribute.
func attributed(name string, value any) func(pcommon.Map, ptrace.Span) {
	return func(_ pcommon.Map, s ptrace.Span) { put(s.Attributes(), name, value) }
}

func sampledBy(state string) func(pcommon.Map, ptrace.Span) {
	return func(_ pcommon.Map, s ptrace.Span) { s.TraceState().FromRaw(state) }
}

var differences = []difference{
	{
		"a span with an adjusted count above 1", sampledBy("ot=th:c"), "4 calls, 4 spans of 4 s",
		"4 calls, 1 spans of 1 s",
	},
	{
		"a span with an adjusted count above 2^32", sampledBy("ot=th:ffffffffffffff"),
		"72057594037927936 calls, 72057594037927936 spans of 7.205759403792794e+16 s",
		"4294967296 calls, 1 spans of 1 s",
	},
	{"a tracestate with two thresholds", sampledBy("ot=th:8;th:c"), "4 calls, 4 spans of 4 s", ""},
	{
		"a threshold above the randomness value", sampledBy("ot=th:c;rv:00000000000000"),
		"4 calls, 4 spans of 4 s", "",
	},
	{
		"a duration with more than ten significant bits", func(_ pcommon.Map,
			s ptrace.Span,
		) {
			s.SetStartTimestamp(s.EndTimestamp() - 1e9 - 1)
		},
		"above 1 s, 1 calls, 1 spans of 1.000000001 s", "1 calls, 1 spans of 1.000000001 s",
	},
	{"a resource without a service", func(resource pcommon.Map,
		_ ptrace.Span,
	) {
		resource.Remove("service.name")
	}, "nothing", `service.name="unknown_service"`},
	{
		"a service with an empty name", func(resource pcommon.Map,
			_ ptrace.Span,
		) {
			resource.PutStr("service.name", "")
		}, `service.name=""`,
		`service.name="unknown_service"`,
	},
	{"a service name that is not a string", func(resource pcommon.Map,
		_ ptrace.Span,
	) {
		resource.PutInt("service.name", 5)
	}, `service.name=""`, `service.name="5"`},
	{
		"a span without a name", func(_ pcommon.Map, s ptrace.Span) { s.SetName("") }, `span.name=""`,
		`span.name="server.request"`,
	},
	{
		"a name of more than 5000 bytes", func(_ pcommon.Map,
			s ptrace.Span,
		) {
			s.SetName(strings.Repeat("x", 5001))
		},
		fmt.Sprintf("span.name=%q", strings.Repeat("x", 5001)),
		fmt.Sprintf("span.name=%q", strings.Repeat("x", 5000)),
	},
	{
		"a kind that OTLP does not define", func(_ pcommon.Map, s ptrace.Span) { s.SetKind(6) }, `span.kind=""`,
		`span.kind="SPAN_KIND_UNSPECIFIED"`,
	},
	{
		"a status that OTLP does not define", func(_ pcommon.Map, s ptrace.Span) { s.Status().SetCode(3) },
		`status.code=""`, "",
	},
	{"an empty attribute", attributed("peer.service", ""), `peer.service=""`, ""},
	{
		"an attribute that is a list, a map or bytes", attributed("peer.service", []any{"a"}),
		`peer.service="[\"a\"]"`, "",
	},
	{
		"an attribute of more than 200 bytes", attributed("rpc.service", strings.Repeat("y", 201)),
		fmt.Sprintf("rpc.service=%q", strings.Repeat("y", 201)),
		fmt.Sprintf("rpc.service=%q", strings.Repeat("y", 200-len("rpc.service:"))),
	},
	{
		"a dimension that only the resource has",
		func(resource pcommon.Map, _ ptrace.Span) { resource.PutStr("peer.service", "x") },
		`peer.service="x"`, "",
	},
	{
		"an HTTP status that is not a number", attributed("http.response.status_code", "OK"),
		`http.response.status_code="OK"`, "",
	},
	{
		"a gRPC status by name", attributed("rpc.grpc.status_code", "NOT_FOUND"),
		`rpc.grpc.status_code="NOT_FOUND"`, `rpc.grpc.status_code="5"`,
	},
	{"a gRPC status under its present name", func(_ pcommon.Map, s ptrace.Span) {
		s.Attributes().PutStr("rpc.system.name", "grpc")
		s.Attributes().PutStr("rpc.response.status_code", "5")
	}, `rpc.system.name="grpc"`, `rpc.grpc.status_code="5" rpc.system.name="grpc"`},
	{"a peer of a server, internal or unspecified span", func(_ pcommon.Map, s ptrace.Span) {
		s.Attributes().PutStr("peer.service", "p")
		s.Attributes().PutStr("server.address", "h")
	}, `peer.service="p" server.address="h"`, ""},
	{"a peer under an older name", func(_ pcommon.Map, s ptrace.Span) {
		s.SetKind(ptrace.SpanKindClient)
		s.Attributes().PutStr("net.peer.name", "h")
	}, `span.kind="SPAN_KIND_CLIENT"`, `server.address="h" span.kind="SPAN_KIND_CLIENT"`},
}

// traces returns a request with the span. The number distinguishes its process from others.
func (d *difference) traces(number int) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint(number))
	resource.Resource().Attributes().PutStr("service.name", "shop")
	s := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName("GET /")
	s.SetKind(ptrace.SpanKindServer)
	s.SetTraceID(pcommon.TraceID{1})
	s.SetSpanID(pcommon.SpanID{1})
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	s.SetStartTimestamp(s.EndTimestamp() - 1e9)
	d.change(resource.Resource().Attributes(), s)
	return traces
}

// seen describes the differences of the series of one process from the other series.
func (all allSeries) seen(number int) string {
	for name, s := range all {
		resource, attributes, _ := strings.Cut(name, "| ")
		if !strings.Contains(resource, fmt.Sprintf("service.instance.id=%q ", fmt.Sprint(number))) {
			continue
		}
		var parts []string
		for _, as := range []string{
			`service.name="shop" `, `span.kind="SPAN_KIND_SERVER" `,
			`span.name="GET /" `, `status.code="STATUS_CODE_UNSET" `,
		} {
			attributes = strings.Replace(attributes, as, "", 1)
		}
		if attributes = strings.TrimSpace(attributes); attributes != "" {
			parts = append(parts, attributes)
		}
		if s.at(0)[0] > 0 {
			parts = append(parts, "above 1 s")
		}
		if s.calls != 1 || s.spans != 1 || s.seconds != 1 {
			parts = append(parts, fmt.Sprintf("%d calls, %d spans of %v s", s.calls, s.spans, s.seconds))
		}
		return strings.Join(parts, ", ")
	}
	return "nothing"
}

// TestConnector_DocumentedDifferences checks each row of the table in docs/semantics.md.
func TestConnector_DocumentedDifferences(t *testing.T) {
	d := startDaemon(t)
	s := newSender(t, d)
	var requests []ptrace.Traces
	listed := map[string]bool{}
	for i := range differences {
		requests = append(requests, differences[i].traces(i))
		s.send(requests[i], way(i)%ways)
		listed[differences[i].what] = true
	}
	ours, theirs := d.stop(len(differences)), connected(t, requests)
	for i := range differences {
		d := &differences[i]
		if got := theirs.seen(i); got != d.theirs {
			t.Errorf("%s: the connector has %.200s, want %.200s", d.what, got, d.theirs)
		}
		if got := ours.seen(i); got != d.ours {
			t.Errorf("%s: the daemon has %.200s, want %.200s", d.what, got, d.ours)
		}
	}
	text, err := os.ReadFile("../../../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "### Differences from the spanmetrics connector")
	list, _, _ = strings.Cut(list, "\n##")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (an? [^|]*) \|`).FindAllStringSubmatch(list, -1) {
		documented[row[1]] = true
	}
	if !found || !maps.Equal(documented, listed) {
		t.Errorf("the document lists %q, want %q", slices.Sorted(maps.Keys(documented)),
			slices.Sorted(maps.Keys(listed)))
	}
}
