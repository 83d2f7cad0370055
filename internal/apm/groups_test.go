package apm

import (
	"math"
	"net/http"
	"slices"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"google.golang.org/protobuf/proto"
)

type object = map[string]any

// sketchBytes is a sketch as the agent's own code makes it.
func sketchBytes(t testing.TB, durations ...float64) []byte {
	t.Helper()
	sketch, err := ddsketch.LogCollapsingLowestDenseDDSketch(aggregate.RelativeAccuracy, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range durations {
		if err := sketch.Add(d); err != nil {
			t.Fatal(err)
		}
	}
	return marshal(t, sketch.ToProto())
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// statsOf is a payload of one group, changed at will.
func statsOf(t testing.TB, change func(payload, bucket, group object)) []byte {
	t.Helper()
	group := object{
		"Service": "shop", "Name": "web.request", "Resource": "GET /", "Type": "web", "HTTPStatusCode": uint32(200), "DBType": "",
		"Hits": uint64(5), "Errors": uint64(2), "TopLevelHits": uint64(4), "Duration": uint64(31_000),
		"OkSummary": sketchBytes(t, 0, 1000, 20_000), "ErrorSummary": sketchBytes(t, 5000, 5000), "Synthetics": true,
		"SpanKind": "client", "PeerTags": []string{"db.name:orders", "out.host:db"}, "IsTraceRoot": int32(2), "GRPCStatusCode": "0",
		"HTTPMethod": "GET", "HTTPEndpoint": "/", "srv_src": "m", "SpanDerivedPrimaryTags": []string{}, "AdditionalMetricTags": []string{"a:b"},
	}
	bucket := object{"Start": uint64(170e9), "Duration": uint64(10e9), "AgentTimeShift": int64(0)}
	payload := object{
		"Hostname": "h", "Env": "e", "Version": "v", "Lang": "", "TracerVersion": "1", "RuntimeID": "r", "Sequence": uint64(7),
		"Service": "base", "ContainerID": "", "Tags": []string{}, "GitCommitSha": "c", "ProcessTagsHash": uint64(0), "ProcessTags": "p:q",
		"AgentAggregation": "", "ImageTag": "",
	}
	if change != nil {
		change(payload, bucket, group)
	}
	if _, said := bucket["Stats"]; !said {
		bucket["Stats"] = []any{group}
	}
	if _, said := payload["Stats"]; !said {
		payload["Stats"] = []any{bucket}
	}
	return encode(t, payload)
}

func TestGroups(t *testing.T) {
	var g groups
	why, ok := g.read(statsOf(t, nil), http.Header{headerLang: {"go"}, headerTracerVersion: {"2"}, headerObfuscation: {"1"}, headerContainer: {"c1"}})
	if !ok || len(g.all) != 1 || g.width != 10e9 {
		t.Fatalf("%v: %+v", why, g.all)
	}
	if want := (span.Origin{
		Host: "h", Env: "e", Version: "v", Lang: "go", TracerVersion: "1", RuntimeID: "r", Service: "base", GitCommitSHA: "c",
		ProcessTags: "p:q", ContainerID: "c1", ObfuscationVersion: "1",
	}); g.origin != want {
		t.Errorf("origin %+v", g.origin)
	}
	got := g.all[0]
	if want := (aggregate.Counts{Spans: 5, Hits: 5, Errors: 2, TopLevel: 4, Duration: 31_000}); got.Counts != want || got.Bucket != 170e9 {
		t.Errorf("counts %+v in bucket %d", got.Counts, got.Bucket)
	}
	k := got.Key
	if !slices.Equal(k.PeerTags, []string{"db.name:orders", "out.host:db"}) || !slices.Equal(k.AdditionalTags, []string{"a:b"}) {
		t.Errorf("tags %q, %q", k.PeerTags, k.AdditionalTags)
	}
	k.PeerTags, k.AdditionalTags = nil, nil
	if want := (span.Key{
		Service: "shop", Operation: "web.request", Resource: "GET /", Type: "web", Kind: "client", TraceRoot: span.TraceRootFalse,
		HTTPStatus: 200, HTTPMethod: "GET", HTTPEndpoint: "/", GRPCStatus: "0", ServiceSource: "m", Synthetics: true,
	}); !equalKeys(k, want) {
		t.Errorf("key %+v", k)
	}
	if got.OK.Zeros != 1 || len(got.OK.List) != 2 || len(got.Errors.List) != 1 || got.Errors.List[0].Spans != 2 {
		t.Errorf("bins %+v and %+v", got.OK, got.Errors)
	}
}

func equalKeys(a, b span.Key) bool {
	return string(a.AppendCanonical(nil)) == string(b.AppendCanonical(nil))
}

func TestGroupsThatCantBeMerged(t *testing.T) {
	java, err := mapping.NewLinearlyInterpolatedMapping(1.0 / 128)
	if err != nil {
		t.Fatal(err)
	}
	interpolated := ddsketch.NewDDSketch(java, store.NewDenseStore(), store.NewDenseStore())
	mapped := func(change func(*sketchpb.IndexMapping)) func(_, _, g object) {
		var s sketchpb.DDSketch
		if err := proto.Unmarshal(sketchBytes(t, 1000), &s); err != nil {
			t.Fatal(err)
		}
		change(s.Mapping)
		return func(_, _, g object) { g["OkSummary"], g["ErrorSummary"] = marshal(t, &s), marshal(t, &s) }
	}
	sketch := func(change func(*sketchpb.DDSketch)) func(_, _, g object) {
		var s sketchpb.DDSketch
		if err := proto.Unmarshal(sketchBytes(t, 1000), &s); err != nil {
			t.Fatal(err)
		}
		change(&s)
		return func(_, _, g object) { g["OkSummary"] = marshal(t, &s) }
	}
	in := func(to int, name string, value any) func(p, b, g object) {
		return func(p, b, g object) { []object{p, b, g}[to][name] = value }
	}
	const payload, bucket, group = 0, 1, 2
	for name, test := range map[string]struct {
		change func(p, b, g object)
		want   StatsResult
	}{
		"two mappings":         {in(group, "OkSummary", marshal(t, interpolated.ToProto())), StatsUnfit},
		"no sketch":            {in(group, "ErrorSummary", []byte{}), StatsMapping},
		"no mapping":           {sketch(func(s *sketchpb.DDSketch) { s.Mapping = nil }), StatsMapping},
		"no mapping at all":    {func(_, _, g object) { g["OkSummary"], g["ErrorSummary"] = []byte{}, []byte{} }, StatsMapping},
		"no gamma":             {mapped(func(m *sketchpb.IndexMapping) { m.Gamma = 1 }), StatsMapping},
		"a gamma that is none": {mapped(func(m *sketchpb.IndexMapping) { m.Gamma = math.NaN() }), StatsMapping},
		"a coarse mapping":     {mapped(func(m *sketchpb.IndexMapping) { m.Gamma = 4 }), StatsMapping},
		"an interpolation that the agent does not know": {mapped(func(m *sketchpb.IndexMapping) { m.Interpolation = sketchpb.IndexMapping_QUADRATIC }), StatsMapping},
		"no sketch at all":       {in(group, "ErrorSummary", []byte("garbage")), StatsUnfit},
		"an offset":              {sketch(func(s *sketchpb.DDSketch) { s.Mapping.IndexOffset = 1 }), StatsUnfit},
		"a negative bin":         {sketch(func(s *sketchpb.DDSketch) { s.PositiveValues.ContiguousBinIndexOffset = -1 }), StatsUnfit},
		"a bin of no duration":   {sketch(func(s *sketchpb.DDSketch) { s.PositiveValues.ContiguousBinIndexOffset = 2048 }), StatsUnfit},
		"a bin of no mapping":    {sketch(func(s *sketchpb.DDSketch) { s.PositiveValues.ContiguousBinIndexOffset = 8192 }), StatsUnfit},
		"half a span":            {sketch(func(s *sketchpb.DDSketch) { s.ZeroCount = .5 }), StatsUnfit},
		"less than no span":      {sketch(func(s *sketchpb.DDSketch) { s.ZeroCount = -1 }), StatsUnfit},
		"no number of spans":     {sketch(func(s *sketchpb.DDSketch) { s.ZeroCount = math.NaN() }), StatsUnfit},
		"negative durations":     {sketch(func(s *sketchpb.DDSketch) { s.NegativeValues = s.PositiveValues }), StatsUnfit},
		"a dialect":              {in(group, "DBType", "mysql"), StatsUnfit},
		"what we do not know":    {in(group, "New", 1), StatsUnfit},
		"new of a bucket":        {in(bucket, "New", 1), StatsUnfit},
		"new of a payload":       {in(payload, "New", 1), StatsUnfit},
		"tags of the agent":      {in(payload, "Tags", []string{"a"}), StatsUnfit},
		"an image":               {in(payload, "ImageTag", "a"), StatsUnfit},
		"a fourth root":          {in(group, "IsTraceRoot", 9), StatsUnfit},
		"too many":               {in(group, "Hits", uint64(math.MaxUint64)), StatsUnfit},
		"none":                   {in(group, "Hits", 0), StatsUnfit},
		"a probe":                {in(payload, "Stats", []any{}), StatsUnfit},
		"a negative count":       {in(group, "Hits", -1), StatsUnread},
		"a count that is a text": {in(group, "Hits", "1"), StatsUnread},
		"nil for a text":         {in(group, "Service", nil), StatsUnread},
		"nil for a group":        {in(bucket, "Stats", []any{nil}), StatsUnread},
		"a text for a sketch":    {in(group, "OkSummary", "text"), StatsUnread},
	} {
		var g groups
		if why, ok := g.read(statsOf(t, test.change), http.Header{}); ok || why != test.want {
			t.Errorf("%s: %v %v, want %v", name, ok, why, test.want)
		}
	}
}

// FuzzGroups reads anything. What it takes, protobuf takes, and finds the same spans
// in its sketches.
func FuzzGroups(f *testing.F) {
	f.Add(statsOf(f, nil), sketchBytes(f, 1, 2, 1e9))
	f.Add([]byte{0x81}, []byte{})
	var g groups
	f.Fuzz(func(t *testing.T, body, sketch []byte) {
		if _, ok := g.read(body, http.Header{}); ok && len(g.all) == 0 {
			t.Error("nothing can be merged")
		}
		bins, _, ok := g.sketch.read(sketch, nil)
		if !ok {
			return
		}
		var reference sketchpb.DDSketch
		if err := proto.Unmarshal(sketch, &reference); err != nil {
			t.Fatalf("protobuf does not read it: %v", err)
		}
		want, got := reference.ZeroCount, float64(bins.Zeros)
		for _, n := range reference.PositiveValues.GetContiguousBinCounts() {
			want += n
		}
		for _, n := range reference.PositiveValues.GetBinCounts() {
			want += n
		}
		for _, bin := range bins.List {
			got += float64(bin.Spans)
		}
		if got != want {
			t.Errorf("%v spans, protobuf finds %v", got, want)
		}
	})
}
