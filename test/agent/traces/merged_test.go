package traces

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/spanstatsd/spanstatsd/test/agent/realagent"
	"google.golang.org/protobuf/proto"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// agentsMapping is the mapping to which the agent converts all sketches that it merges.
var agentsMapping = must(mapping.NewLogarithmicMapping(.01))

// counters are the sketches of the tracers.
var counters = map[string]func() *ddsketch.DDSketch{
	"go": func() *ddsketch.DDSketch {
		return ddsketch.NewDDSketch(agentsMapping, store.NewCollapsingLowestDenseStore(2048),
			store.NewCollapsingLowestDenseStore(2048))
	},
	"java": func() *ddsketch.DDSketch {
		m := must(mapping.NewLinearlyInterpolatedMappingWithGamma(math.Exp2(1./64), 0))
		return ddsketch.NewDDSketch(m, store.NewCollapsingLowestDenseStore(1024),
			store.NewCollapsingLowestDenseStore(1024))
	},
	"python": func() *ddsketch.DDSketch {
		return ddsketch.NewDDSketch(must(mapping.NewLogarithmicMapping(.00775)), store.NewDenseStore(),
			store.NewDenseStore())
	},
	"cubic": func() *ddsketch.DDSketch {
		return ddsketch.NewDDSketch(must(mapping.NewCubicallyInterpolatedMapping(.01)),
			store.NewSparseStore(), store.NewSparseStore())
	},
}

// worker returns the payload of one process. The language determines the mapping; tracers of several
// languages can write the same services.
func worker(rnd *rand.Rand, lang string, start time.Time) (p *pb.ClientStatsPayload, hits uint64) {
	bucket := &pb.ClientStatsBucket{Start: uint64(start.UnixNano()), Duration: 10e9}
	for resource := range 8 {
		if rnd.IntN(3) == 0 {
			continue
		}
		g := &pb.ClientGroupedStats{
			Service: "shop", Name: "web.request", Resource: fmt.Sprint("GET /", resource),
			HTTPStatusCode: 200, Type: pick(rnd, "web", "http"), SpanKind: "server",
			IsTraceRoot: pb.Trilean_TRUE,
			PeerTags:    []string{"db.name:carts", "peer.service:" + pick(rnd, "db", "cache")},
		}
		fine, failed := counters[lang](), counters[lang]()
		for range 1 + rnd.IntN(60) {
			// From a nanosecond to a minute, so that Java's sketches collapse.
			d := uint64(math.Exp(rnd.Float64() * 25))
			if rnd.IntN(30) == 0 {
				d = 0
			}
			to := fine
			if rnd.IntN(10) == 0 {
				to = failed
				g.Errors++
			}
			if err := to.Add(float64(d)); err != nil {
				panic(err)
			}
			g.Hits++
			g.TopLevelHits += rnd.Uint64N(2)
			g.Duration += d
		}
		g.OkSummary, g.ErrorSummary = must(proto.Marshal(fine.ToProto())),
			must(proto.Marshal(failed.ToProto()))
		bucket.Stats = append(bucket.Stats, g)
		hits += g.Hits
	}
	return &pb.ClientStatsPayload{
		Hostname: "h", Env: "prod", Version: "1", Service: "shop", RuntimeID: fmt.Sprint(rnd.Uint64()),
		Sequence: rnd.Uint64N(9), ProcessTags: "entrypoint.name:shop",
		Tags: pick(rnd, nil, []string{"team:shop", "tier:1"}), Stats: []*pb.ClientStatsBucket{bucket},
	}, hits
}

// groupsAt returns the groups of an agent's output, by everything that identifies them and by second.
func groupsAt(t *testing.T, of *realagent.Statistics) map[string]*pb.ClientGroupedStats {
	all := map[string]*pb.ClientGroupedStats{}
	for _, p := range of.Payloads() {
		for _, bucket := range p.Stats {
			for _, g := range bucket.Stats {
				tags := slices.Sorted(slices.Values(g.PeerTags))
				key := fmt.Sprintf("%d %q", bucket.Start,
					[]any{
						p.Hostname, p.Env, p.Version, p.Lang, p.Service, p.ContainerID, p.ProcessTags,
						g.Service, g.Name, g.Resource, g.Type, g.SpanKind, tags,
					})
				if all[key] != nil {
					t.Errorf("%s occurs twice in the output of the agent", key)
				}
				all[key] = g
			}
		}
	}
	return all
}

// decoded returns a sketch as the agent reads it.
func decoded(encoded []byte) *ddsketch.DDSketch {
	var message sketchpb.DDSketch
	if err := proto.Unmarshal(encoded, &message); err != nil {
		panic(err)
	}
	return must(ddsketch.FromProto(&message))
}

// asAgents returns a sketch as converted by the agent.
func asAgents(s *ddsketch.DDSketch) *ddsketch.DDSketch {
	if s.IndexMapping.Equals(agentsMapping) {
		return s
	}
	return s.ChangeMapping(agentsMapping, store.NewCollapsingLowestDenseStore(2048),
		store.NewCollapsingLowestDenseStore(2048), 1)
}

// differ describes the bin in which two sketches differ, if any. Whole counts must be equal. Fractions
// from a conversion are floating-point sums, so they may differ by rounding.
func differ(a, b *ddsketch.DDSketch) string {
	bins := func(s *ddsketch.DDSketch) map[int]float64 {
		all := map[int]float64{-1: s.GetZeroCount()}
		s.GetPositiveValueStore().ForEach(func(bin int, count float64) bool {
			all[bin] = count
			return false
		})
		return all
	}
	ours, expected := bins(a), bins(b)
	for bin := range ours {
		expected[bin] += 0
	}
	for bin, count := range expected {
		if got := ours[bin]; math.Abs(got-count) > 1e-9*max(1, count) {
			return fmt.Sprintf("bin %d has %v, want %v", bin, got, count)
		}
	}
	return ""
}

// TestAgent_SameOutputForMergedStats sends the client-computed statistics of sixteen processes of a service
// to one agent through the daemon, which merges them, and to another agent directly. Both agents must
// produce the same output for each group, second and bin. If an agent receives a group in a single
// payload, it forwards the sketch with its original mapping, and otherwise converts it, so sketches
// with different mappings are compared after the agent's conversion.
func TestAgent_SameOutputForMergedStats(t *testing.T) {
	for name, langs := range map[string][]string{
		"go": {"go"}, "java": {"java"}, "python": {"python"}, "mixed": {"go", "java", "python", "cubic"},
	} {
		t.Run(name, func(t *testing.T) {
			for try := uint64(0); !sameOfWorkers(t, langs, try); try++ {
				t.Log("machine too slow: the agent assigns statistics of 17 s ago to another second")
			}
		})
	}
}

// sameOfWorkers returns false if the machine was too slow for a result.
func sameOfWorkers(t *testing.T, langs []string, try uint64) bool {
	through, direct := startAgent(t), startAgent(t)
	d, socket := startDaemon(t, through)
	clients := [2]*http.Client{clientOf(t, socket), clientOf(t, direct.Socket)}
	began := time.Now()
	var hits uint64
	var mu sync.Mutex
	var workers sync.WaitGroup
	for n := range 16 {
		workers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(n), try))
			// In two slots of the agent, so that some groups occur once and others several times.
			start := began.Add(-2 * time.Second * time.Duration(n%8/7))
			p, of := worker(rnd, langs[n%len(langs)], start)
			s := sent{
				path: "/v0.6/stats", body: must(p.MarshalMsg(nil)),
				header: map[string]string{"Datadog-Meta-Lang": "jvm", "Datadog-Container-ID": "container-1"},
			}
			for _, client := range clients {
				if response := s.to(t, client); response != "200 " {
					t.Errorf("response %q", response)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			hits += of
		})
	}
	workers.Wait()
	fresh := time.Since(began) < 3*time.Second
	accounting := d.Stop()
	inTime := time.Since(began) < 14*time.Second
	through.Stop()
	direct.Stop()
	if !inTime || !fresh {
		return false
	}
	if !accounting.Balanced || accounting.Flushed != hits {
		t.Errorf("of %d spans, accounting: %+v", hits, accounting)
	}
	got, want := groupsAt(t, &through.Received), groupsAt(t, &direct.Received)
	if len(got) != len(want) {
		t.Errorf("%d groups, want %d", len(got), len(want))
	}
	unconverted, converted := 0, 0
	for key, w := range want {
		g := got[key]
		if g == nil {
			t.Errorf("%s is missing", key)
			continue
		}
		if g.Hits != w.Hits || g.Errors != w.Errors || g.TopLevelHits != w.TopLevelHits ||
			g.Duration != w.Duration {
			t.Errorf("%s\n got %v\nwant %v", key, g, w)
		}
		for _, encoded := range [][2][]byte{{g.OkSummary, w.OkSummary}, {g.ErrorSummary, w.ErrorSummary}} {
			ours, expected := decoded(encoded[0]), decoded(encoded[1])
			unconverted++
			if !ours.IndexMapping.Equals(expected.IndexMapping) {
				unconverted, converted = unconverted-1, converted+1
				ours, expected = asAgents(ours), asAgents(expected)
			}
			if why := differ(ours, expected); why != "" {
				t.Errorf("%s: %s", key, why)
			}
		}
	}
	t.Logf("%d groups of %d spans; %d sketches compared as they are, %d converted", len(want), hits,
		unconverted, converted)
	if unconverted == 0 || len(langs) == 1 && langs[0] != "go" && converted == 0 {
		t.Error("not all code paths of the agent were covered")
	}
	return true
}
