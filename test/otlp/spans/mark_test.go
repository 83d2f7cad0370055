package spans

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const statsComputed = "_dd.stats_computed"

// withMarkers adds the counted marker attribute to some resources of a request.
func withMarkers(rnd *rand.Rand, request *trace.TracesData) *trace.TracesData {
	for _, r := range request.ResourceSpans {
		for range rnd.IntN(3) {
			if r.Resource == nil {
				r.Resource = &resource.Resource{}
			}
			text := &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: oneOf(rnd, "true",
				"false", "")}}
			marker := &common.KeyValue{Key: statsComputed, Value: oneOf(rnd, text, text, randomValue(rnd, 0))}
			r.Resource.Attributes = slices.Insert(r.Resource.Attributes,
				rnd.IntN(len(r.Resource.Attributes)+1), marker)
		}
	}
	return request
}

// takeMarkers removes the counted marker attribute from a resource and returns its values in order.
func takeMarkers(r *trace.ResourceSpans) (all []*common.AnyValue) {
	if r.Resource == nil {
		r.Resource = &resource.Resource{}
	}
	r.Resource.Attributes = slices.DeleteFunc(r.Resource.Attributes, func(a *common.KeyValue) bool {
		if a.Key == statsComputed {
			all = append(all, a.Value)
		}
		return a.Key == statsComputed
	})
	return all
}

func hasSpans(r *trace.ResourceSpans) bool {
	return slices.ContainsFunc(r.ScopeSpans, func(s *trace.ScopeSpans) bool { return len(s.Spans) > 0 })
}

// isCountedByClient reports whether the first marker of a resource says that the client has counted its spans: whether
// its value is a text other than "" and "false", a number, or true.
func isCountedByClient(r *trace.ResourceSpans) bool {
	for _, a := range r.GetResource().GetAttributes() {
		if a.Key != statsComputed {
			continue
		}
		switch value := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			return value.StringValue != "" && value.StringValue != "false"
		case *common.AnyValue_BoolValue:
			return value.BoolValue
		case *common.AnyValue_IntValue, *common.AnyValue_DoubleValue:
			return true
		}
		return false
	}
	return false
}

// checkMark compares the forwarded form of a body with the counted marker against the library's reading
// of it.
func checkMark(t testing.TB, c *otel.Counter, body []byte, k *keeper) {
	t.Helper()
	if c.Count(body, policy) != nil {
		return
	}
	var keeping *sampling.Policy
	if k != nil {
		keeping = &k.Policy
	}
	var sample sampling.Sample
	found, forwarded := sample.Select(c.Request(), keeping, true), body
	if !found.IsUnchanged {
		forwarded = sample.AppendSelected(nil)
	}
	if len(forwarded) != found.Size {
		t.Fatalf("%d bytes were measured, %d written", found.Size, len(forwarded))
	}
	got, isRequest := decode(forwarded)
	want, _ := decode(body)
	if !isRequest || (got == nil) && want != nil {
		t.Fatalf("the forwarded part is not a request: %q of %q", forwarded, body)
	}
	if want == nil {
		return
	}
	counted := map[*trace.ResourceSpans]bool{}
	for _, r := range want.ResourceSpans {
		counted[r] = hasSpans(r) && !isCountedByClient(r) // the client's own marker stays
	}
	if k != nil {
		k.keep(want)
	}
	if len(got.ResourceSpans) != len(want.ResourceSpans) {
		t.Fatalf("%d resources were forwarded, want %d", len(got.ResourceSpans), len(want.ResourceSpans))
	}
	for i, r := range want.ResourceSpans {
		before, after := takeMarkers(r), takeMarkers(got.ResourceSpans[i])
		isMarked := len(after) == 1 && after[0].GetStringValue() == "true"
		if counted[r] && !isMarked ||
			!counted[r] && !slices.EqualFunc(before, after, func(a, b *common.AnyValue) bool {
				return proto.Equal(a, b)
			}) {
			t.Fatalf("resource %d, with spans %v, has markers %v, had %v: %q of %q", i, counted[r], after,
				before, forwarded, body)
		}
	}
	if !proto.Equal(got, want) {
		t.Fatalf("forwarded\n%v\nwant\n%v", got, want)
	}
	again := otel.NewCounter()
	if err := again.Count(forwarded, policy); err != nil {
		t.Fatalf("the forwarded part can't be counted: %v", err)
	}
	if !sample.Select(again.Request(), nil, true).IsUnchanged {
		t.Fatal("a request with the marker gets another marker")
	}
}

func TestMark_CountedRequests(t *testing.T) {
	c := otel.NewCounter()
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		body, keeper := encode(t, withMarkers(rnd, randomRequest(rnd))), randomKeeper(rnd)
		checkMark(t, c, body, nil)
		checkMark(t, c, body, &keeper)
	}
}

// FuzzMark checks the same for arbitrary bytes.
func FuzzMark(f *testing.F) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		f.Add(encode(f, withMarkers(rnd, randomRequest(rnd))), seed)
	}
	c := otel.NewCounter()
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		keeper := randomKeeper(rand.New(rand.NewPCG(seed, 5)))
		checkMark(t, c, body, nil)
		checkMark(t, c, body, &keeper)
	})
}
