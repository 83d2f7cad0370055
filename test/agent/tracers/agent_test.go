package tracers

import (
	"fmt"
	"path/filepath"
	"testing"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/spanstatsd/spanstatsd/test/agent/realagent"
	"google.golang.org/protobuf/proto"
)

// startAgent runs the unmodified agent on a socket, with its output captured.
func startAgent(t testing.TB) *realagent.Agent {
	t.Helper()
	return realagent.Start(t, filepath.Join(t.TempDir(), "agent.sock"), nil)
}

// group is the content of a group. The sketches are represented by sums that differ if bins differ.
type group struct{ hits, errors, topLevel, duration, fine, failed float64 }

func (a group) plus(b group) group {
	return group{
		a.hits + b.hits, a.errors + b.errors, a.topLevel + b.topLevel, a.duration + b.duration,
		a.fine + b.fine, a.failed + b.failed,
	}
}

// groupsOf adds up the groups of statistics and returns them with the number of spans they count.
func groupsOf(t *testing.T, all ...*realagent.Statistics) (groups map[string]group, spans float64) {
	t.Helper()
	groups = map[string]group{}
	for _, c := range all {
		for _, p := range c.Payloads() {
			for _, bucket := range p.Stats {
				for _, g := range bucket.Stats {
					key := keyOf(p, g)
					groups[key] = groups[key].plus(group{
						float64(g.Hits), float64(g.Errors), float64(g.TopLevelHits), float64(g.Duration),
						binned(t, g.OkSummary), binned(t, g.ErrorSummary),
					})
					spans += float64(g.Hits)
				}
			}
		}
	}
	return groups, spans
}

// keyOf returns everything that identifies a group.
func keyOf(p *pb.ClientStatsPayload, g *pb.ClientGroupedStats) string {
	return fmt.Sprintf("%q", []any{
		p.Env, p.Version, p.Lang, p.Service, p.ContainerID, p.GitCommitSha, p.ProcessTags,
		g.Service, g.Name, g.Resource, g.Type, g.SpanKind, fmt.Sprint(g.HTTPStatusCode),
		fmt.Sprint(g.Synthetics),
		fmt.Sprint(int(g.IsTraceRoot)), g.GRPCStatusCode, g.ServiceSource, g.PeerTags, g.HTTPMethod,
		g.HTTPEndpoint, g.AdditionalMetricTags,
	})
}

// canonical is the mapping to which the agent converts sketches with other mappings before it merges
// them.
var canonical, _ = mapping.NewLogarithmicMapping(0.01)

// binned returns a number that differs for sketches with different counts or bins, after conversion to
// the canonical mapping.
func binned(t *testing.T, encoded []byte) (sum float64) {
	t.Helper()
	if len(encoded) == 0 {
		return 0
	}
	var message sketchpb.DDSketch
	if err := proto.Unmarshal(encoded, &message); err != nil {
		t.Fatal(err)
	}
	sketch, err := ddsketch.FromProto(&message)
	if err != nil {
		t.Fatal(err)
	}
	if !sketch.IndexMapping.Equals(canonical) {
		sketch = sketch.ChangeMapping(canonical, store.NewCollapsingLowestDenseStore(2048),
			store.NewCollapsingLowestDenseStore(2048), 1)
	}
	sketch.GetPositiveValueStore().ForEach(func(index int, count float64) bool {
		sum += count * float64(1+index*index)
		return false
	})
	return sum + sketch.GetZeroCount()
}
