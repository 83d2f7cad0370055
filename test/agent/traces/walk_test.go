package traces

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	datadog "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"google.golang.org/protobuf/proto"
)

// total is the content of a group.
type total struct {
	hits, errors, topLevel, duration float64
	fine, failed                     float64 // in the two sketches
}

func (a total) plus(b total) total {
	return total{
		a.hits + b.hits, a.errors + b.errors, a.topLevel + b.topLevel, a.duration + b.duration,
		a.fine + b.fine, a.failed + b.failed,
	}
}

// sketched returns the number of durations in a sketch.
func sketched(t testing.TB, encoded []byte) (count float64) {
	var sketch sketchpb.DDSketch
	if err := proto.Unmarshal(encoded, &sketch); err != nil {
		t.Fatal(err)
	}
	count = sketch.ZeroCount
	for _, n := range sketch.PositiveValues.GetContiguousBinCounts() {
		count += n
	}
	return count
}

// ours returns what the daemon would count for the batches of a counter.
func ours(t testing.TB, batches iter.Seq2[string, *span.Batch], lang string,
	since time.Time,
) map[string]total {
	totals := map[string]total{}
	oldest := since.UnixNano() - since.UnixNano()%10e9
	for baseService, batch := range batches {
		for i := range batch.Snapshots {
			s := &batch.Snapshots[i]
			k := batch.Labeler.Label(s.Span)
			k.Normalize(lang)
			bucket := max(s.End-s.End%10e9, oldest)
			if now := time.Now().UnixNano(); bucket > now {
				bucket = now - now%10e9
			}
			key := fmt.Sprintf("%q", []any{
				baseService, k.Service, k.Operation, k.Resource, k.Type, k.Kind, fmt.Sprint(k.HTTPStatus),
				fmt.Sprint(k.Synthetics), fmt.Sprint(k.TraceRoot), k.GRPCStatus, k.ServiceSource, k.PeerTags,
				fmt.Sprint(bucket),
			})
			count := total{hits: s.Weight, duration: s.Weight * float64(s.Duration), fine: 1}
			if s.Flags&span.Error != 0 {
				count.errors, count.fine, count.failed = s.Weight, 0, 1
			}
			if s.Flags&span.TopLevel != 0 {
				count.topLevel = s.Weight
			}
			totals[key] = totals[key].plus(count)
		}
	}
	return totals
}

func agentPolicy(t testing.TB, conf *config.AgentConfig) *dd.Policy {
	policy, ok := dd.NewPolicy(conf.PeerTagsCache().Keys,
		[]string{"client", "consumer", "producer", "server"}, nil, dd.Labels{})
	if !ok {
		t.Fatal("the agent uses more tags than the test distinguishes")
	}
	return policy
}

var formats = map[datadog.Format]func(*fakePayload, *rand.Rand) []byte{
	datadog.FormatV04: (*fakePayload).v04, datadog.FormatV05: (*fakePayload).v05,
	datadog.FormatV07: (*fakePayload).v07, datadog.FormatV1: (*fakePayload).v1,
}

// withinOneBucket repeats a comparison if a bucket ended during it: a span without a start, or with an
// end in the future, is counted at the current time, which can differ between the two sides.
func withinOneBucket(compare func()) {
	for {
		bucket := time.Now().UnixNano() / 10e9
		compare()
		if time.Now().UnixNano()/10e9 == bucket {
			return
		}
	}
}

// TestBody_CountedLikeAgent checks random traces in every format. For each group and bucket, the
// counter must have the same result as the agent's concentrator.
func TestBody_CountedLikeAgent(t *testing.T) {
	o := makeOracle()
	policy := agentPolicy(t, o.conf)
	for format, write := range formats {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(10, uint64(format)))
			c := dd.NewCounter()
			now := time.Now()
			since := now.Add(-2 * time.Hour)
			groups, uncounted := 0, 0
			for i := range 2_000 {
				body := write(randomPayload(rnd, now), rnd)
				lang, topLevel := pick(rnd, "", "go"), rnd.IntN(2) == 0
				var err, refused error
				var actual, expected map[string]total
				withinOneBucket(func() {
					err = c.Count(format, body, lang, topLevel, policy)
					expected, refused = o.count(t, format, slices.Clone(body), lang, topLevel, since)
					if err == nil && refused == nil {
						actual = ours(t, c.Batches, lang, since)
					}
				})
				if err != nil {
					uncounted++
					continue // the agent counts it
				}
				if refused != nil {
					t.Fatalf("case %d: counted, but the agent rejects it: %v", i, refused)
				}
				groups += len(actual)
				if !maps.Equal(actual, expected) {
					for key := range actual {
						if actual[key] != expected[key] {
							t.Errorf("case %d: %s\n ours %v\nagent %v", i, key, actual[key], expected[key])
						}
					}
					for key := range expected {
						if _, ok := actual[key]; !ok {
							t.Errorf("case %d: only the agent has %s %v", i, key, expected[key])
						}
					}
					t.FailNow()
				}
			}
			t.Logf("%d groups, %d bodies left to the agent", groups, uncounted)
			if groups < 5_000 || uncounted > 700 {
				t.Errorf("only %d groups were compared, and %d bodies uncounted: the comparison has little coverage", groups, uncounted)
			}
		})
	}
}
