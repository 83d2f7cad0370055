package clientstats_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"
)

type object = map[string]any

// sketchBytes returns an encoded sketch, made with the agent's library.
func sketchBytes(t testing.TB, durations ...float64) []byte {
	t.Helper()
	sketch, err := ddsketch.LogCollapsingLowestDenseDDSketch(sketch.RelativeAccuracy, 2048)
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

// statsOf returns a payload with one group, after change has modified it.
func statsOf(t testing.TB, change func(payload, bucket, group object)) []byte {
	t.Helper()
	group := object{
		"Service":                "shop",
		"Name":                   "web.request",
		"Resource":               "GET /",
		"Type":                   "web",
		"HTTPStatusCode":         uint32(200),
		"DBType":                 "",
		"Hits":                   uint64(5),
		"Errors":                 uint64(2),
		"TopLevelHits":           uint64(4),
		"Duration":               uint64(31_000),
		"OkSummary":              sketchBytes(t, 0, 1000, 20_000),
		"ErrorSummary":           sketchBytes(t, 5000, 5000),
		"Synthetics":             true,
		"SpanKind":               "client",
		"PeerTags":               []string{"db.name:orders", "out.host:db"},
		"IsTraceRoot":            int32(2),
		"GRPCStatusCode":         "0",
		"HTTPMethod":             "GET",
		"HTTPEndpoint":           "/",
		"srv_src":                "m",
		"SpanDerivedPrimaryTags": []string{},
		"AdditionalMetricTags":   []string{"a:b"},
	}
	bucket := object{"Start": uint64(170e9), "Duration": uint64(10e9), "AgentTimeShift": int64(0)}
	payload := object{
		"Hostname":         "h",
		"Env":              "e",
		"Version":          "v",
		"Lang":             "",
		"TracerVersion":    "1",
		"RuntimeID":        "r",
		"Sequence":         uint64(7),
		"Service":          "base",
		"ContainerID":      "",
		"Tags":             []string{},
		"GitCommitSha":     "c",
		"ProcessTagsHash":  uint64(0),
		"ProcessTags":      "p:q",
		"AgentAggregation": "", "ImageTag": "",
	}
	if change != nil {
		change(payload, bucket, group)
	}
	if _, isPresent := bucket["Stats"]; !isPresent {
		bucket["Stats"] = []any{group}
	}
	if _, isPresent := payload["Stats"]; !isPresent {
		payload["Stats"] = []any{bucket}
	}
	body, err := msgpack.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestPayload_Groups(t *testing.T) {
	var p clientstats.Payload
	err := p.Read(statsOf(t, nil),
		span.Origin{Lang: "go", TracerVersion: "2", ObfuscationVersion: "1", ContainerID: "c1"})
	if err != nil || len(p.Groups) != 1 || p.BucketDuration != 10e9 {
		t.Fatalf("%v: %+v", err, p.Groups)
	}
	if want := (span.Origin{
		Host:          "h",
		Env:           "e",
		Version:       "v",
		Lang:          "go",
		TracerVersion: "1",
		RuntimeID:     "r",
		Service:       "base",
		GitCommitSHA:  "c",
		ProcessTags:   "p:q", ContainerID: "c1", ObfuscationVersion: "1",
	}); p.Origin != want {
		t.Errorf("origin %+v", p.Origin)
	}
	got := p.Groups[0]
	if want := (aggregate.Counts{
		Spans: 5, Hits: 5, Errors: 2, TopLevel: 4,
		Duration: 31_000,
	}); got.Counts != want || got.Bucket != 170e9 {
		t.Errorf("counts %+v in bucket %d", got.Counts, got.Bucket)
	}
	k := got.Key
	if !slices.Equal(k.PeerTags, []string{"db.name:orders", "out.host:db"}) ||
		!slices.Equal(k.AdditionalTags, []string{"a:b"}) {
		t.Errorf("tags %q, %q", k.PeerTags, k.AdditionalTags)
	}
	k.PeerTags, k.AdditionalTags = nil, nil
	if want := (span.Key{
		Service:       "shop",
		Operation:     "web.request",
		Resource:      "GET /",
		Type:          "web",
		Kind:          "client",
		TraceRoot:     span.TraceRootFalse,
		HTTPStatus:    200,
		HTTPMethod:    "GET",
		HTTPEndpoint:  "/",
		GRPCStatus:    "0",
		ServiceSource: "m",
		Synthetics:    true,
	}); !equalKeys(k, want) {
		t.Errorf("key %+v", k)
	}
	if got.OK.Zeros != 1 || len(got.OK.List) != 2 || len(got.Errors.List) != 1 ||
		got.Errors.List[0].Spans != 2 {
		t.Errorf("bins %+v and %+v", got.OK, got.Errors)
	}
}

// TestGroups_TagsOfPayload checks that tags from DD_TAGS, which the agent ignores,
// don't prevent merging. A value that is not a list of strings is invalid.
func TestGroups_TagsOfPayload(t *testing.T) {
	read := func(tags any) error {
		return new(clientstats.Payload).Read(statsOf(t, func(p, _, _ object) {
			p["Tags"] = tags
		}), span.Origin{})
	}
	if err := read([]string{"team:shop", "tier:1"}); err != nil {
		t.Error(err)
	}
	for _, tags := range []any{[]int{1}, "team:shop", nil, object{"team": "shop"}} {
		if err := read(tags); err != clientstats.ErrUnparsable {
			t.Errorf("%v: %v", tags, err)
		}
	}
}

func equalKeys(a, b span.Key) bool {
	return string(wire.AppendKey(nil, &a)) == string(wire.AppendKey(nil, &b))
}

func TestGroups_Unmergeable(t *testing.T) {
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
	changed := func(change func(*sketchpb.DDSketch)) func(_, _, g object) {
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
		want   error
	}{
		"two mappings": {
			in(group, "OkSummary", marshal(t, interpolated.ToProto())),
			clientstats.ErrIncompatible,
		},
		"no sketch": {in(group, "ErrorSummary", []byte{}), clientstats.ErrMapping},
		"no mapping": {changed(func(s *sketchpb.DDSketch) {
			s.Mapping = nil
		}), clientstats.ErrMapping},
		"no mapping at all": {func(_, _, g object) {
			g["OkSummary"], g["ErrorSummary"] = []byte{}, []byte{}
		}, clientstats.ErrMapping},
		"no gamma": {mapped(func(m *sketchpb.IndexMapping) {
			m.Gamma = 1
		}), clientstats.ErrMapping},
		"a gamma that is none": {mapped(func(m *sketchpb.IndexMapping) {
			m.Gamma = math.NaN()
		}), clientstats.ErrMapping},
		"a coarse mapping": {mapped(func(m *sketchpb.IndexMapping) {
			m.Gamma = 4
		}), clientstats.ErrMapping},
		"an interpolation that the agent does not know": {mapped(func(m *sketchpb.IndexMapping) {
			m.Interpolation = sketchpb.IndexMapping_QUADRATIC
		}), clientstats.ErrMapping},
		"no sketch at all": {in(group, "ErrorSummary", []byte("garbage")), clientstats.ErrIncompatible},
		"an offset": {changed(func(s *sketchpb.DDSketch) {
			s.Mapping.IndexOffset = 1
		}), clientstats.ErrIncompatible},
		"a negative bin": {changed(func(s *sketchpb.DDSketch) {
			s.PositiveValues.ContiguousBinIndexOffset = -1
		}), clientstats.ErrIncompatible},
		"a bin of no duration": {changed(func(s *sketchpb.DDSketch) {
			s.PositiveValues.ContiguousBinIndexOffset = 2048
		}), clientstats.ErrIncompatible},
		"a bin of no mapping": {changed(func(s *sketchpb.DDSketch) {
			s.PositiveValues.ContiguousBinIndexOffset = 8192
		}), clientstats.ErrIncompatible},
		"half a span": {changed(func(s *sketchpb.DDSketch) {
			s.ZeroCount = .5
		}), clientstats.ErrIncompatible},
		"less than no span": {changed(func(s *sketchpb.DDSketch) {
			s.ZeroCount = -1
		}), clientstats.ErrIncompatible},
		"no number of spans": {changed(func(s *sketchpb.DDSketch) {
			s.ZeroCount = math.NaN()
		}), clientstats.ErrIncompatible},
		"negative durations": {changed(func(s *sketchpb.DDSketch) {
			s.NegativeValues = s.PositiveValues
		}), clientstats.ErrIncompatible},
		"a dialect":           {in(group, "DBType", "mysql"), clientstats.ErrIncompatible},
		"what we do not know": {in(group, "New", 1), clientstats.ErrIncompatible},
		"new of a bucket":     {in(bucket, "New", 1), clientstats.ErrIncompatible},
		"new of a payload":    {in(payload, "New", 1), clientstats.ErrIncompatible},
		"an image":            {in(payload, "ImageTag", "a"), clientstats.ErrIncompatible},
		"a fourth root":       {in(group, "IsTraceRoot", 9), clientstats.ErrIncompatible},
		"too many":            {in(group, "Hits", uint64(math.MaxUint64)), clientstats.ErrIncompatible},
		"none":                {in(group, "Hits", 0), clientstats.ErrIncompatible},
		"buckets of two widths": {func(p, b, g object) {
			other := maps.Clone(b)
			other["Duration"] = uint64(2e9)
			b["Stats"], other["Stats"] = []any{g}, []any{g}
			p["Stats"] = []any{b, other}
		}, clientstats.ErrIncompatible},
		"a probe":                {in(payload, "Stats", []any{}), clientstats.ErrIncompatible},
		"a negative count":       {in(group, "Hits", -1), clientstats.ErrUnparsable},
		"a count that is a text": {in(group, "Hits", "1"), clientstats.ErrUnparsable},
		"nil for a text":         {in(group, "Service", nil), clientstats.ErrUnparsable},
		"nil for a group":        {in(bucket, "Stats", []any{nil}), clientstats.ErrUnparsable},
		"a text for a sketch":    {in(group, "OkSummary", "text"), clientstats.ErrUnparsable},
	} {
		var p clientstats.Payload
		if err := p.Read(statsOf(t, test.change), span.Origin{}); err != test.want {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// FuzzGroups checks that every accepted input has groups to merge.
func FuzzGroups(f *testing.F) {
	f.Add(statsOf(f, nil))
	f.Add([]byte{0x81})
	var p clientstats.Payload
	f.Fuzz(func(t *testing.T, body []byte) {
		if p.Read(body, span.Origin{}) == nil && len(p.Groups) == 0 {
			t.Error("nothing can be merged")
		}
	})
}

// inUse returns the memory used by heap and stacks.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// TestPayload_WithinItsMemory checks that reading a body takes no more memory than Bytes returns.
func TestPayload_WithinItsMemory(t *testing.T) {
	for _, length := range []int{64 << 10, 1 << 20, 25 << 20} {
		body := groupsOfNothing(length)
		p := &clientstats.Payload{}
		before := inUse()
		err := p.Read(body, span.Origin{})
		held := inUse() - before
		if promised := clientstats.Bytes(length); held > promised {
			t.Errorf("%d bytes of statistics made us hold %d, %d are promised: %v", length, held, promised,
				err)
		}
		runtime.KeepAlive(p)
	}
}

// TestPayload_ReleasesBody checks that Next drops the body, after success
// and after an error.
func TestPayload_ReleasesBody(t *testing.T) {
	for _, cut := range []int{0, 1} {
		p := &clientstats.Payload{}
		last := func() weak.Pointer[byte] {
			body := statsOf(t, nil)
			body = slices.Clone(body[:len(body)-cut])
			if err := p.Read(body, span.Origin{}); (err == nil) != (cut == 0) {
				t.Fatal(err)
			}
			return weak.Make(&body[0])
		}()
		next := p.Next()
		runtime.GC()
		if last.Value() != nil {
			t.Errorf("cut by %d: the last body is still held", cut)
		}
		runtime.KeepAlive(p)
		runtime.KeepAlive(next)
	}
}

// array32 returns the header of an array, or of a map with another lead byte.
func array32(lead byte, n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{lead}, uint32(n))
}

// groupsOfNothing returns a payload with many groups that have many tags.
func groupsOfNothing(length int) []byte {
	group := append(append([]byte{0x82, 0xa4}, "Hits"...), 1, 0xa8)
	group = append(group, "PeerTags"...)
	group = append(group, 0x99, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0)
	n := length / len(group)
	body := append(append([]byte{0x81, 0xa5}, "Stats"...), 0x91, 0x81, 0xa5)
	body = append(body, "Stats"...)
	return slices.Concat(body, array32(0xdd, n), bytes.Repeat(group, n))
}

// TestLimits_GroupsAndBins checks that the limits on groups and bins are exact.
func TestLimits_GroupsAndBins(t *testing.T) {
	bodyOf := func(groups ...any) []byte {
		return statsOf(t, func(_, bucket, _ object) { bucket["Stats"] = groups })
	}
	groupOf := func(ok, errors []byte) any {
		return object{"Hits": 1, "OkSummary": ok, "ErrorSummary": errors}
	}
	check := func(what string, most []any, oneMore any) {
		var p clientstats.Payload
		if err := p.Read(bodyOf(most...), span.Origin{}); err != nil {
			t.Errorf("as many %s as there may be: %v", what, err)
		}
		if err := p.Read(bodyOf(append(most, oneMore)...), span.Origin{}); !errors.Is(err,
			clientstats.ErrIncompatible) {
			t.Errorf("one %s more: %v", what, err)
		}
	}
	small := groupOf(sketchBytes(t), sketchBytes(t))
	most := []any{small}
	for clientstats.GroupsOf(len(bodyOf(append(most, small)...))) > len(most) {
		most = append(most, small)
	}
	check("groups", most, small)

	full := ddsketch.NewDDSketch(ownMapping(t), store.NewDenseStore(), store.NewDenseStore()).ToProto()
	first, last, err := sketch.AgentMapping.Range()
	if err != nil {
		t.Fatal(err)
	}
	full.PositiveValues.ContiguousBinIndexOffset = int32(first)
	full.PositiveValues.ContiguousBinCounts = slices.Repeat([]float64{1}, int(last-first)+1)
	large := marshal(t, full)
	most = nil
	bins := len(full.PositiveValues.ContiguousBinCounts)
	for range clientstats.MaxBins / bins {
		most = append(most, groupOf(large, sketchBytes(t)))
	}
	full.PositiveValues.ContiguousBinCounts = full.PositiveValues.ContiguousBinCounts[:clientstats.MaxBins%bins]
	most = append(most, groupOf(marshal(t, full), sketchBytes(t)))
	check("bins", most, groupOf(sketchBytes(t, 1000), sketchBytes(t)))
}

// ownMapping returns the mapping of the agent's sketches.
func ownMapping(t *testing.T) mapping.IndexMapping {
	t.Helper()
	mapping, err := sketch.AgentMapping.Library()
	if err != nil {
		t.Fatal(err)
	}
	return mapping
}
