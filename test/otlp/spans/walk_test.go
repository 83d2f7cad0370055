package spans

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
)

// counted is a counted span.
type counted struct {
	service, version, env string // properties of the origin
	key                   span.Key
	duration              uint64
	end                   int64
	flags                 span.Flags
	weight                float64
}

// countedBy returns the spans that a counter found in a body.
func countedBy(t testing.TB, c *otel.Counter) (all []counted) {
	t.Helper()
	for origin, batch := range c.Batches {
		for i := range batch.Snapshots {
			s := &batch.Snapshots[i]
			one := counted{
				service: origin.Service, version: origin.TracerVersion, env: origin.Env,
				duration: s.Duration, end: s.End, flags: s.Flags, weight: s.Weight,
			}
			if err := wire.ReadKey(&one.key, wire.AppendKey(nil, batch.Labeler.Label(s.Span))); err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
	}
	return all
}

// value returns the first value of an attribute.
func value(all []*common.KeyValue, name string) *common.AnyValue {
	for _, a := range all {
		if a.Key == name {
			return a.Value
		}
	}
	return nil
}

// written returns the first present attribute of several names, as text.
func written(all []*common.KeyValue, names ...string) string {
	for _, name := range names {
		if !slices.ContainsFunc(all, func(a *common.KeyValue) bool { return a.Key == name }) {
			continue
		}
		switch v := value(all, name).GetValue().(type) {
		case *common.AnyValue_StringValue:
			return v.StringValue
		case *common.AnyValue_IntValue:
			return strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_BoolValue:
			return strconv.FormatBool(v.BoolValue)
		case *common.AnyValue_DoubleValue:
			if inJSON, err := json.Marshal(v.DoubleValue); err == nil {
				return string(inJSON)
			}
			return strconv.FormatFloat(v.DoubleValue, 'f', -1, 64) // not a number, or infinite
		}
		return ""
	}
	return ""
}

// conventions lists the attributes that become tags: the current name, then older names.
var conventions = [][]string{
	{"db.collection.name", "db.sql.table"},
	{"db.namespace", "db.name"},
	{"db.operation.name", "db.operation"},
	{"db.system.name", "db.system"},
	{"messaging.destination.name", "messaging.destination"},
	{"messaging.operation.name"},
	{"messaging.operation.type", "messaging.operation"},
	{"messaging.system"},
	{"peer.service"},
	{"rpc.method"},
	{"rpc.service"},
	{"rpc.system.name", "rpc.system"},
	{"server.address"},
}

// tagsOf returns the tags of a span.
func tagsOf(s *trace.Span) (tags []string) {
	for _, names := range conventions {
		if names[0] == "server.address" || names[0] == "peer.service" {
			switch s.Kind {
			case trace.Span_SPAN_KIND_CLIENT, trace.Span_SPAN_KIND_PRODUCER, trace.Span_SPAN_KIND_CONSUMER:
			default:
				continue
			}
		}
		if names[0] == "server.address" {
			names = append(slices.Clone(names), "net.peer.name")
		}
		if v := written(s.Attributes, names...); v != "" {
			tags = append(tags, names[0]+":"+v)
		}
	}
	return tags
}

// modelOf returns the expected counted span. Operation and type are tested elsewhere.
func modelOf(r *trace.ResourceSpans, s *trace.Span) counted {
	attributes := r.GetResource().GetAttributes()
	m := counted{
		service: cmp.Or(span.Text(written(attributes, "service.name"), span.MaxOriginField), "unknown_service"),
		version: "otlp-" + span.Text(written(attributes, "telemetry.sdk.version"), span.MaxOriginField),
		env: cmp.Or(span.Text(written(attributes, "deployment.environment.name"), span.MaxOriginField),
			span.Text(written(attributes, "deployment.environment"), span.MaxOriginField)),
		end:    int64(min(max(s.StartTimeUnixNano, s.EndTimeUnixNano), math.MaxInt64)),
		weight: weightOf(s.TraceState),
	}
	if s.EndTimeUnixNano > s.StartTimeUnixNano {
		m.duration = s.EndTimeUnixNano - s.StartTimeUnixNano
	}
	isRoot := strings.Trim(string(s.ParentSpanId), "\x00") == ""
	if s.Status.GetCode() == trace.Status_STATUS_CODE_ERROR {
		m.flags |= span.Error
	}
	if isRoot || s.Kind == trace.Span_SPAN_KIND_SERVER || s.Kind == trace.Span_SPAN_KIND_CONSUMER {
		m.flags |= span.TopLevel
	}
	m.key = span.Key{
		Service: m.service, Resource: s.Name, Kind: kindOf(s.Kind), TraceRoot: span.TraceRootFalse,
		HTTPMethod:   written(s.Attributes, "http.request.method", "http.method"),
		HTTPEndpoint: written(s.Attributes, "http.route"),
		HTTPStatus:   statusOf(written(s.Attributes, "http.response.status_code", "http.status_code")),
		PeerTags:     tagsOf(s),
	}
	if isRoot {
		m.key.TraceRoot = span.TraceRootTrue
	}
	if s.Status.GetCode() == trace.Status_STATUS_CODE_OK {
		m.key.AdditionalTags = []string{"otel.status_code:OK"}
	}
	if value(s.Attributes, "rpc.grpc.status_code") != nil {
		m.key.GRPCStatus = rules.ParseGRPCStatus(written(s.Attributes, "rpc.grpc.status_code"))
	} else if rules.CallsGRPC(written(s.Attributes, "rpc.system.name"), written(s.Attributes, "rpc.system")) {
		m.key.GRPCStatus = rules.ParseGRPCStatus(written(s.Attributes, "rpc.response.status_code"))
	}
	return m
}

func kindOf(kind trace.Span_SpanKind) string {
	name, known := strings.CutPrefix(kind.String(), "SPAN_KIND_")
	if !known {
		return "unspecified"
	}
	return strings.ToLower(name)
}

// statusOf parses an integer in any accepted form.
func statusOf(text string) uint32 {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n <= math.MaxUint32 &&
		n == math.Trunc(n) {
		return uint32(n)
	}
	return 0
}

// check compares the parser with the library for a body.
func check(t testing.TB, c *otel.Counter, body []byte) {
	t.Helper()
	request, isRequest := decode(body)
	err := c.Count(body, policy)
	switch {
	case errors.Is(err, spantable.ErrTooMuch) || errors.Is(err, otlp.ErrUnparsable) && isRequest && isOdd(body):
		return
	case (err == nil) != isRequest:
		t.Fatalf("the library reads it: %v; the walk: %v", isRequest, err)
	case request == nil:
		return
	}
	var want []counted
	for _, r := range request.ResourceSpans {
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				want = append(want, modelOf(r, s))
			}
		}
	}
	got := countedBy(t, c)
	if len(got) != len(want) || len(c.Request().Spans) != len(want) {
		t.Fatalf("%d spans are counted of %d", len(got), len(want))
	}
	// Batches are in the order of their first spans. Each batch keeps the order of its spans.
	of := func(a counted) string { return a.service + a.version + a.env }
	slices.SortStableFunc(got, func(a, b counted) int { return cmp.Compare(of(a), of(b)) })
	slices.SortStableFunc(want, func(a, b counted) int { return cmp.Compare(of(a), of(b)) })
	for i := range want {
		got[i].key.Operation, got[i].key.Type = "", ""
		if got[i].key.PeerTags = append([]string(nil), got[i].key.PeerTags...); !reflect.DeepEqual(got[i],
			want[i]) {
			t.Fatalf("span %d of %d is counted as\n%+v, want\n%+v", i, len(want), got[i], want[i])
		}
	}
}

var policy = otel.NewPolicy(otel.Labels{KeepNames: true}) // the model of this package has no rules for names

func TestWalk_CountsLikeLibrary(t *testing.T) {
	c := otel.NewCounter()
	for seed := range uint64(500) {
		check(t, c, encode(t, randomRequest(rand.New(rand.NewPCG(seed, 1)))))
		c.Release()
	}
}

// FuzzWalk checks the same for arbitrary bytes.
func FuzzWalk(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(encode(f, randomRequest(rand.New(rand.NewPCG(seed, 2)))))
	}
	c := otel.NewCounter()
	f.Fuzz(func(t *testing.T, body []byte) { check(t, c, body) })
}
