package bench

import (
	"encoding/json"
	"math"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"google.golang.org/protobuf/proto"
)

// latencies are times in nanoseconds, in a sketch that keeps a quantile within one per
// cent. A tracer's process writes them into its result, and they are merged here.
type latencies struct {
	sketch  *ddsketch.DDSketch
	longest float64
}

func newLatencies() *latencies {
	sketch, err := ddsketch.NewDefaultDDSketch(0.01)
	if err != nil {
		panic("BUG: make a sketch: " + err.Error())
	}
	return &latencies{sketch: sketch}
}

func (l *latencies) add(took time.Duration) { l.addCount(float64(max(took, 0)), 1) }

func (l *latencies) addCount(ns float64, count uint64) {
	if err := l.sketch.AddWithCount(ns, float64(count)); err != nil {
		panic("BUG: add a latency: " + err.Error())
	}
	l.longest = max(l.longest, ns)
}

func (l *latencies) merge(other *latencies) {
	if err := l.sketch.MergeWith(other.sketch); err != nil {
		panic("BUG: merge latencies: " + err.Error())
	}
	l.longest = max(l.longest, other.longest)
}

// addHistogram adds what a metric of the daemon counts in seconds, each bucket in its
// middle, and what lies beyond the last bound at that.
func (l *latencies) addHistogram(buckets []bucket) {
	from := 0.0
	for _, b := range buckets {
		middle := (from + b.bound) / 2
		if math.IsInf(b.bound, 1) {
			middle = from
		}
		if b.count > 0 {
			l.addCount(middle*1e9, b.count)
		}
		from = b.bound
	}
}

// latenciesJSON is how they travel from process to process.
type latenciesJSON struct {
	Sketch  []byte  `json:"sketch"`
	Longest float64 `json:"longest"`
}

func (l *latencies) MarshalJSON() ([]byte, error) {
	sketch, err := proto.Marshal(l.sketch.ToProto())
	if err != nil {
		return nil, err
	}
	return json.Marshal(latenciesJSON{sketch, l.longest})
}

func (l *latencies) UnmarshalJSON(text []byte) error {
	var read latenciesJSON
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	var message sketchpb.DDSketch
	err := proto.Unmarshal(read.Sketch, &message)
	if err != nil {
		return err
	}
	l.longest = read.Longest
	l.sketch, err = ddsketch.FromProto(&message)
	return err
}

// Times are quantiles in nanoseconds.
type Times struct {
	P50     float64 `json:"p50_ns"`
	P99     float64 `json:"p99_ns"`
	P999    float64 `json:"p999_ns"`
	Longest float64 `json:"max_ns"`
	Samples uint64  `json:"samples"`
}

// times are the quantiles, none of them beyond the longest of all.
func (l *latencies) times() Times {
	t := Times{Longest: l.longest, Samples: uint64(l.sketch.GetCount())}
	if quantiles, err := l.sketch.GetValuesAtQuantiles([]float64{0.5, 0.99, 0.999}); err == nil { // else it is empty
		t.P50, t.P99, t.P999 = min(quantiles[0], l.longest), min(quantiles[1], l.longest), min(quantiles[2], l.longest)
	}
	return t
}
