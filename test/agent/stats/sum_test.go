package stats

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"google.golang.org/protobuf/proto"
)

// sum is the sum of the counts under one name, that of a group or a bucket.
type sum struct {
	hits, errors, topLevel, duration uint64
	ok, failed                       bins
}

// bins are the bins of a sketch, with the zero count under zeroBin.
type bins map[int]float64

// zeroBin is not a valid bin index.
const zeroBin = -1 << 30

// sums adds up the groups of payloads, by the names that the function name returns.
func sums(t *testing.T, payloads []*pb.ClientStatsPayload,
	name func(*pb.ClientStatsPayload, *pb.ClientStatsBucket, *pb.ClientGroupedStats) string,
) map[string]*sum {
	t.Helper()
	all := map[string]*sum{}
	for _, p := range payloads {
		for _, b := range p.Stats {
			for _, g := range b.Stats {
				at := name(p, b, g)
				if all[at] == nil {
					all[at] = &sum{ok: bins{}, failed: bins{}}
				}
				all[at].add(t, g)
			}
		}
	}
	return all
}

func (s *sum) add(t *testing.T, g *pb.ClientGroupedStats) {
	t.Helper()
	s.hits += g.Hits
	s.errors += g.Errors
	s.topLevel += g.TopLevelHits
	s.duration += g.Duration
	s.ok.add(t, g.OkSummary)
	s.failed.add(t, g.ErrorSummary)
}

func (b bins) add(t *testing.T, encoded []byte) {
	t.Helper()
	var sketch sketchpb.DDSketch
	if err := proto.Unmarshal(encoded, &sketch); err != nil {
		t.Fatalf("decode sketch: %v", err)
	}
	if m := sketch.Mapping; m != nil &&
		(m.Gamma != gamma || m.IndexOffset != 0 || m.Interpolation != sketchpb.IndexMapping_NONE) {
		t.Fatalf("the sketch's mapping is %v", m)
	}
	for i, count := range sketch.PositiveValues.GetContiguousBinCounts() {
		b.count(i+int(sketch.PositiveValues.GetContiguousBinIndexOffset()), count)
	}
	for index, count := range sketch.PositiveValues.GetBinCounts() {
		b.count(int(index), count)
	}
	b.count(zeroBin, sketch.ZeroCount)
	if n := sketch.NegativeValues; len(n.GetBinCounts()) > 0 ||
		slices.ContainsFunc(n.GetContiguousBinCounts(), func(c float64) bool { return c != 0 }) {
		t.Fatal("a sketch of durations has bins below 0")
	}
}

// gamma is the base of the mapping with a relative accuracy of 1 %.
const gamma = (1 + 0.01) / (1 - 0.01)

func (b bins) count(index int, count float64) {
	if count != 0 {
		b[index] += count
	}
}

// mustAgree reports every name with different counts.
func mustAgree(t *testing.T, active string, got, want map[string]*sum) {
	t.Helper()
	wrong := 0
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] == nil {
			wrong++
			t.Logf("%s: only in the agent's statistics\n  %s: %s", active, name, want[name])
		} else if g, w := got[name].String(), want[name].String(); g != w {
			wrong++
			t.Logf("%s: at %s\n  arrived %s\n  want    %s", active, name, g, w)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] == nil {
			wrong++
			t.Logf("%s: only in the received statistics\n  %s: %s", active, name, got[name])
		}
	}
	if wrong > 0 || len(want) == 0 {
		t.Fatalf("%s: %d of %d differ", active, wrong, len(want))
	}
}

func (s *sum) String() string {
	return fmt.Sprintf("%d hits, %d errors, %d top-level, %d ns, ok %s, failed %s",
		s.hits, s.errors, s.topLevel, s.duration, s.ok, s.failed)
}

func (b bins) String() string {
	var text strings.Builder
	for _, index := range slices.Sorted(maps.Keys(b)) {
		fmt.Fprintf(&text, "%d:%v ", index, b[index])
	}
	return "[" + strings.TrimSuffix(text.String(), " ") + "]"
}

// byGroup names a group by everything that identifies it, except the main service, which only a
// tracer's own payload contains.
func byGroup(p *pb.ClientStatsPayload, _ *pb.ClientStatsBucket, g *pb.ClientGroupedStats) string {
	slices.Sort(g.PeerTags)
	slices.Sort(g.AdditionalMetricTags)
	return fmt.Sprintf("%q %q %q %d %v %v", []string{
		p.Hostname, p.Env, p.Version, p.ContainerID, p.Lang, p.GitCommitSha, p.ImageTag, p.ProcessTags,
	}, []string{
		g.Service, g.Name, g.Resource, g.Type, g.SpanKind, g.GRPCStatusCode, g.HTTPMethod, g.HTTPEndpoint,
		g.ServiceSource,
	}, [][]string{g.PeerTags, g.AdditionalMetricTags}, g.HTTPStatusCode, g.Synthetics, g.IsTraceRoot)
}

// byBucket names a group by its bucket.
func byBucket(_ *pb.ClientStatsPayload, b *pb.ClientStatsBucket, _ *pb.ClientGroupedStats) string {
	return fmt.Sprintf("%d+%d", b.Start, b.Duration)
}
