package datadog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"
)

type object = map[string]any

// library creates a sketch like a tracer.
type library func() *ddsketch.DDSketch

// goSketch is the sketch of the agent and of dd-trace-go.
func goSketch() *ddsketch.DDSketch {
	m, err := mapping.NewLogarithmicMapping(.01)
	if err != nil {
		panic(err)
	}
	return ddsketch.NewDDSketch(m, store.NewCollapsingLowestDenseStore(2048),
		store.NewCollapsingLowestDenseStore(2048))
}

// java is the sketch of dd-trace-java.
func java() *ddsketch.DDSketch {
	m, err := mapping.NewLinearlyInterpolatedMappingWithGamma(math.Exp2(1./64), 0)
	if err != nil {
		panic(err)
	}
	return ddsketch.NewDDSketch(m, store.NewCollapsingLowestDenseStore(1024),
		store.NewCollapsingLowestDenseStore(1024))
}

// python is the sketch of the Python and Node tracers.
func python() *ddsketch.DDSketch {
	m, err := mapping.NewLogarithmicMapping(.00775)
	if err != nil {
		panic(err)
	}
	return ddsketch.NewDDSketch(m, store.NewDenseStore(), store.NewDenseStore())
}

// statistics returns the client-computed statistics of one bucket: a group with the given number of
// spans of the given duration.
func statistics(t *testing.T, sketches library, start time.Time, runtime string, spans int,
	duration float64,
) []byte {
	t.Helper()
	sketch := sketches()
	empty, err := proto.Marshal(sketch.ToProto())
	if err != nil {
		t.Fatal(err)
	}
	if err := sketch.AddWithCount(duration, float64(spans)); err != nil {
		t.Fatal(err)
	}
	summary, err := proto.Marshal(sketch.ToProto())
	if err != nil {
		t.Fatal(err)
	}
	body, err := msgpack.Marshal(object{
		"Hostname":      "h",
		"Env":           "prod",
		"Service":       "shop",
		"RuntimeID":     runtime,
		"Lang":          "",
		"TracerVersion": "",
		"Stats": []any{object{
			"Start": uint64(start.UnixNano()), "Duration": uint64(10e9),
			"Stats": []any{object{
				"Service":      "shop",
				"Name":         "web.request",
				"Resource":     "GET /",
				"Hits":         uint64(spans),
				"TopLevelHits": uint64(spans),
				"Duration":     uint64(duration) * uint64(spans),
				"OkSummary":    summary,
				"ErrorSummary": empty,
				"IsTraceRoot":  1,
			}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// slotted identifies a sum: the bucket's start, the mapping and the bin.
type slotted struct {
	start   uint64
	mapping sketch.Mapping
	bin     int
}

// add adds the groups of a payload to the sums.
func add(t *testing.T, to map[slotted]float64, body []byte) (groups int) {
	t.Helper()
	var payload struct {
		Stats []struct {
			Start uint64
			Stats []struct {
				Hits, TopLevelHits, Duration uint64
				OkSummary                    []byte
			}
		}
	}
	if err := msgpack.Unmarshal(body, &payload); err != nil {
		t.Fatal(err)
	}
	const hits, top, duration = -1, -2, -3
	for _, bucket := range payload.Stats {
		if len(bucket.Stats) != 1 {
			t.Errorf("%d groups in a bucket are equal to another group by the agent's key", len(bucket.Stats))
		}
		for _, g := range bucket.Stats {
			groups++
			var message sketchpb.DDSketch
			if err := proto.Unmarshal(g.OkSummary, &message); err != nil {
				t.Fatal(err)
			}
			library, err := ddsketch.FromProto(&message)
			if err != nil {
				t.Fatal(err)
			}
			m := message.Mapping
			at := slotted{
				bucket.Start,
				sketch.Mapping{Gamma: m.Gamma, Offset: m.IndexOffset, Interpolation: int32(m.Interpolation)},
				hits,
			}
			if at.start%10e9 != 0 {
				at.start -= at.start % 2e9 // slot of the agent
			}
			to[at] += float64(g.Hits)
			to[slotted{at.start, at.mapping, top}] += float64(g.TopLevelHits)
			to[slotted{at.start, at.mapping, duration}] += float64(g.Duration)
			library.GetPositiveValueStore().ForEach(func(bin int, count float64) bool {
				to[slotted{at.start, at.mapping, bin}] += count
				return false
			})
		}
	}
	return groups
}

// TestStats_SixteenProcesses checks that the statistics of sixteen processes of one service leave the daemon as
// one payload, with one group per slot of the agent's time and mapping, and that every response is like
// the agent's.
func TestStats_SixteenProcesses(t *testing.T) {
	aligned := func() time.Time { return time.Now().Truncate(10 * time.Second).Add(-20 * time.Second) }
	for name, workers := range map[string]struct {
		sketches  []library
		startTime func() time.Time
	}{
		"go":                   {[]library{goSketch}, aligned},
		"python":               {[]library{python}, aligned},
		"java":                 {[]library{java}, time.Now},
		"of several languages": {[]library{goSketch, java, python}, time.Now},
	} {
		t.Run(name, func(t *testing.T) {
			for !sixteen(t, workers.sketches, workers.startTime) {
				t.Log("machine too slow: a payload was stale when it was read")
			}
		})
	}
}

// sixteen returns false if the machine was too slow for a result.
func sixteen(t *testing.T, sketches []library, startTime func() time.Time) bool {
	agent := startAgent(t)
	agent.respond = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Datadog-Agent-State", "s1")
	}
	p := start(t, agent, nil)
	p.send("/v0.1/anything", nil)
	began, want := time.Now(), map[slotted]float64{}
	var mu sync.Mutex
	var workers sync.WaitGroup
	for worker := range 16 {
		workers.Go(func() {
			body := statistics(t, sketches[worker%len(sketches)], startTime(), fmt.Sprint(worker), 100,
				float64(1000*(1+worker%2)))
			resp, text := p.send("/v0.6/stats", body, "Datadog-Meta-Lang", "go")
			if resp.StatusCode != http.StatusOK || text != "" ||
				resp.Header.Get("Datadog-Agent-State") != "s1" {
				t.Errorf("status %d, body %q, headers %v", resp.StatusCode, text, resp.Header)
			}
			mu.Lock()
			defer mu.Unlock()
			add(t, want, body)
		})
	}
	workers.Wait()
	ended := time.Now()
	accounting := p.stop()
	if ended.Sub(began) > 5*time.Second {
		return false
	}
	if accounting.Received != 1600 || accounting.Flushed != 1600 {
		t.Errorf("accounting: %+v", accounting)
	}
	const interval = 10e9
	sent, got, groups := agent.of("/v0.6/stats"), map[slotted]float64{}, 0
	for _, payload := range sent {
		groups += add(t, got, payload.body)
		if payload.header.Get("Datadog-Meta-Lang") != "go" {
			t.Errorf("the payload's headers: %v", payload.header)
		}
	}
	if most := 1 + ended.UnixNano()/interval - began.UnixNano()/interval; int64(len(sent)) > most {
		t.Errorf("%d payloads in %d intervals", len(sent), most)
	}
	rows := map[slotted]bool{}
	for at := range got {
		rows[slotted{at.start, at.mapping, 0}] = true
	}
	if !maps.Equal(got, want) || groups > len(rows)*len(sent) {
		t.Errorf("%d groups in %d payloads with\n%v, want\n%v", groups, len(sent), got, want)
	}
	return true
}

// TestStats_ForwardedUnchanged checks that statistics that can't be merged are forwarded unchanged,
// and are not part of the daemon's accounting.
func TestStats_ForwardedUnchanged(t *testing.T) {
	now := time.Now().Truncate(10 * time.Second)
	healthy := statistics(t, goSketch, now, "r", 1, 1000)
	for name, test := range map[string]struct {
		body   []byte
		header []string
		change func(*daemon.Config)
		result string
	}{
		"cut short": {body: healthy[:len(healthy)-9], result: "unparsable"},
		"compressed": {
			body: healthy, header: []string{"Content-Encoding", "gzip"},
			result: "unparsable",
		},
		"of the hour before": {
			body:   statistics(t, goSketch, now.Add(-time.Hour), "r", 1, 1000),
			result: "other_time",
		},
		"started a while ago": {
			body:   statistics(t, goSketch, now.Add(-8*time.Second), "r", 1, 1000),
			result: "other_time",
		},
		"in the future": {
			body:   statistics(t, goSketch, now.Add(time.Hour), "r", 1, 1000),
			result: "other_time",
		},
		"without a span": {body: statistics(t, goSketch, now, "r", 0, 1000), result: "incompatible"},
		"too large": {
			body: append(healthy, make([]byte, 1<<20)...), result: "too_large",
			change: func(c *daemon.Config) {
				c.APM.MaxBody = 1 << 20
			},
		},
		"above the limit of origins": {
			body: statistics(t, goSketch, now, "other", 1, 1000), result: "no_room",
			change: func(c *daemon.Config) {
				c.Aggregate.MaxOrigins, c.Aggregate.ConflateRuntimes = 1, false
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent := startAgent(t)
			p := start(t, agent, test.change)
			before := 0
			if test.result == "no_room" {
				p.send("/v0.6/stats", healthy)
				before = 1
			}
			if resp, _ := p.send("/v0.6/stats", test.body, test.header...); resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
			got := agent.of("/v0.6/stats")
			if len(got) == 0 || !slices.Equal(got[len(got)-1].body, test.body) {
				t.Errorf("%d requests were forwarded", len(got))
			}
			if n := p.resultsOf("spanstatsd_apm_stats_requests_total")[test.result]; n != 1 {
				t.Errorf("%d results %s", n, test.result)
			}
			if accounting := p.stop(); accounting.Received != uint64(before) {
				t.Errorf("accounting: %+v", accounting)
			}
		})
	}
}

// TestStats_InfiniteBinIsLeftToAgent checks that a sketch with bins too wide for a finite
// duration is forwarded unchanged, and that the daemon's status still works afterwards.
func TestStats_InfiniteBinIsLeftToAgent(t *testing.T) {
	wide := func() *ddsketch.DDSketch {
		m, err := mapping.NewLogarithmicMapping(.45)
		if err != nil {
			t.Fatal(err)
		}
		positive := store.NewSparseStore()
		positive.Add(2000)
		return ddsketch.NewDDSketch(m, positive, store.NewSparseStore())
	}
	agent := startAgent(t)
	p := start(t, agent, func(c *daemon.Config) { c.Aggregate.FlushInterval = time.Second })
	body := statistics(t, wide, time.Now(), "r", 1, 1000)
	p.send("/v0.6/stats", body)
	if got := agent.of("/v0.6/stats"); len(got) != 1 || !slices.Equal(got[0].body, body) {
		t.Errorf("%d requests were forwarded", len(got))
	}
	if results := p.resultsOf("spanstatsd_apm_stats_requests_total"); results["incompatible"] != 1 {
		t.Errorf("results %v", results)
	}
	sealed := p.status(t).Cycle.Sealed
	eventually.True(t, "the cycle is sealed", func() bool { return p.status(t).Cycle.Sealed > sealed })
	p.status(t)
}

// status returns the daemon's status.
func (p *proxied) status(t *testing.T) (status status.Status) {
	t.Helper()
	response, err := http.Get("http://" + p.HTTPAddr() + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("/status: %d, %v", response.StatusCode, err)
	}
	return status
}
