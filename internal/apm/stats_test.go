package apm_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"
)

type object = map[string]any

// statistics is what a tracer that computes its own sends of one bucket: a group of
// so many spans that took that long.
func statistics(t *testing.T, start time.Time, runtime string, spans int, duration float64) []byte {
	t.Helper()
	sketch, err := ddsketch.LogCollapsingLowestDenseDDSketch(0.01, 2048)
	if err != nil {
		t.Fatal(err)
	}
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
		"Hostname": "h", "Env": "prod", "Service": "shop", "RuntimeID": runtime, "Lang": "", "TracerVersion": "",
		"Stats": []any{object{"Start": uint64(start.UnixNano()), "Duration": uint64(10e9), "Stats": []any{object{
			"Service": "shop", "Name": "web.request", "Resource": "GET /", "Hits": uint64(spans), "TopLevelHits": uint64(spans),
			"Duration": uint64(duration) * uint64(spans), "OkSummary": summary, "ErrorSummary": empty, "IsTraceRoot": 1,
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestSixteenWorkers: what sixteen processes of one service have counted leaves as
// one payload with one group, and every answer is like the agent's.
func TestSixteenWorkers(t *testing.T) {
	agent := startAgent(t)
	agent.answer = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Datadog-Agent-State", "s1") }
	p := start(t, agent, nil)
	p.send("/v0.1/anything", nil)
	bucket := time.Now().Truncate(10 * time.Second).Add(-20 * time.Second)
	var workers sync.WaitGroup
	for worker := range 16 {
		workers.Go(func() {
			resp, text := p.send("/v0.6/stats", statistics(t, bucket, fmt.Sprint(worker), 100, float64(1000*(1+worker%2))), "Datadog-Meta-Lang", "go")
			if resp.StatusCode != http.StatusOK || text != "" || resp.Header.Get("Datadog-Agent-State") != "s1" {
				t.Errorf("answered %d %q %v", resp.StatusCode, text, resp.Header)
			}
		})
	}
	workers.Wait()
	if books := p.stop(); books.Received != 1600 || books.Flushed != 1600 {
		t.Errorf("the books: %+v", books)
	}
	sent := p.only("/v0.6/stats")
	var payload struct {
		Stats []struct {
			Start uint64
			Stats []struct {
				Hits, TopLevelHits, Duration uint64
				OkSummary                    []byte
			}
		}
	}
	if err := msgpack.Unmarshal(sent.body, &payload); err != nil {
		t.Fatal(err)
	}
	if len(payload.Stats) != 1 || payload.Stats[0].Start != uint64(bucket.UnixNano()) || len(payload.Stats[0].Stats) != 1 {
		t.Fatalf("sent %+v", payload)
	}
	got := payload.Stats[0].Stats[0]
	var sketch sketchpb.DDSketch
	if err := proto.Unmarshal(got.OkSummary, &sketch); err != nil {
		t.Fatal(err)
	}
	counts := slices.DeleteFunc(sketch.PositiveValues.ContiguousBinCounts, func(n float64) bool { return n == 0 })
	for _, n := range sketch.PositiveValues.BinCounts {
		counts = append(counts, n)
	}
	if got.Hits != 1600 || got.TopLevelHits != 1600 || got.Duration != 800*1000+800*2000 || !slices.Equal(counts, []float64{800, 800}) {
		t.Errorf("sent %+v with bins %v", got, counts)
	}
	if sent.header.Get("Datadog-Meta-Lang") != "go" {
		t.Errorf("the payload's headers: %v", sent.header)
	}
}

// TestStatisticsThatAreForwarded: what can't be merged reaches the agent as it came,
// and is in no book of ours.
func TestStatisticsThatAreForwarded(t *testing.T) {
	now := time.Now().Truncate(10 * time.Second)
	good := statistics(t, now, "r", 1, 1000)
	for name, test := range map[string]struct {
		body   []byte
		header []string
		change func(*daemon.Config)
		result string
	}{
		"cut short":               {body: good[:len(good)-9], result: "unread"},
		"compressed":              {body: good, header: []string{"Content-Encoding", "gzip"}, result: "unread"},
		"of the hour before":      {body: statistics(t, now.Add(-time.Hour), "r", 1, 1000), result: "other_time"},
		"begun when it was begun": {body: statistics(t, now.Add(-time.Second), "r", 1, 1000), result: "other_time"},
		"without a span":          {body: statistics(t, now, "r", 0, 1000), result: "unfit"},
		"too large":               {body: append(good, make([]byte, 1<<20)...), result: "too_large", change: func(c *daemon.Config) { c.APM.MaxBody = 1 << 20 }},
		"of one origin too many":  {body: statistics(t, now, "other", 1, 1000), result: "no_room", change: func(c *daemon.Config) { c.Aggregate.MaxOrigins, c.Aggregate.ConflateRuntimes = 1, false }},
	} {
		t.Run(name, func(t *testing.T) {
			agent := startAgent(t)
			p := start(t, agent, test.change)
			before := 0
			if test.result == "no_room" {
				p.send("/v0.6/stats", good)
				before = 1
			}
			if resp, _ := p.send("/v0.6/stats", test.body, test.header...); resp.StatusCode != http.StatusOK {
				t.Errorf("answered %d", resp.StatusCode)
			}
			got := agent.of("/v0.6/stats")
			if len(got) == 0 || !slices.Equal(got[len(got)-1].body, test.body) {
				t.Errorf("%d requests were forwarded", len(got))
			}
			if n := p.resultsOf("spanstatsd_apm_stats_requests_total")[test.result]; n != 1 {
				t.Errorf("%d results %s", n, test.result)
			}
			if books := p.stop(); books.Received != uint64(before) {
				t.Errorf("the books: %+v", books)
			}
		})
	}
}
