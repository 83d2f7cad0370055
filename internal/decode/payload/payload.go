// Package payload reads the statistics that go to a Datadog agent as the agent itself would:
// `spanstatsd dump` prints them with it, and the stand-in agent of lab/ and the tests of the
// encoder hold the encoder to it. A Walk reads those that tracers write, in place and a group
// at a time, for who adds them up: with it nothing is lost, and nothing is kept but tags, of
// which Walk.MaxTags says how many there may be.
//
// It is at least as strict as the real one. A nil where a string, array or map belongs, text
// for binary, a float for an integer and a negative count are refused. What the real one takes
// without a word although it would show wrong numbers is taken too, and noted as a problem:
// see check.go.
//
// It shares no code with the encoder, so that a mistake made there cannot be made here in the
// same way: payloads are read with a msgpack library and sketches with the agent's own. The
// program's internal/wire/msgpack is not used.
//
// It keeps no state, so any goroutine may call it. An array or a map has at most maxElements,
// what is skipped is nested maxDepth deep at most, and a sketch's bins are those that a
// duration has, so that a payload of a few bytes takes no more memory than the agent's
// largest.
package payload

import (
	"fmt"
	"math"
	"reflect"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"google.golang.org/protobuf/proto"
)

// Payload is a ClientStatsPayload as it stood on the wire.
type Payload struct {
	Hostname, Env, Version, Lang, TracerVersion, RuntimeID string
	AgentAggregation, Service, ContainerID                 string
	GitCommitSha, ImageTag, ProcessTags                    string

	Sequence, ProcessTagsHash uint64
	Tags                      []string
	Stats                     []Bucket
}

// Bucket is a ClientStatsBucket.
type Bucket struct {
	Start, Duration uint64
	AgentTimeShift  int64
	Stats           []Group
}

// Group is a ClientGroupedStats: what was counted of the spans with these labels.
type Group struct {
	Labels
	Hits, Errors, TopLevelHits, Duration uint64
	OkSummary, ErrorSummary              []byte
}

// Labels stand beside the counts on the wire.
type Labels struct {
	Service, Name, Resource, Type, DBType, SpanKind string
	GRPCStatusCode, HTTPMethod, HTTPEndpoint        string
	ServiceSource                                   string `msgpack:"srv_src"`

	HTTPStatusCode uint32
	Synthetics     bool
	IsTraceRoot    int32

	PeerTags, AdditionalMetricTags, SpanDerivedPrimaryTags []string
}

// Walk reads payloads a group at a time, for who adds them up: by the rules of Decode, but one
// of which anything would be lost is ErrLossy. An error of either function ends it.
type Walk struct {
	MaxTags int // of a payload, in all of its lists
	// Group is called with each group. Its texts and sketches are parts of the body.
	Group func(*Group) error
	// Bucket is called behind its groups, without them.
	Bucket func(*Bucket) error
}

// Decode reads a payload and returns it without its buckets. Its texts are parts of the body.
func (w Walk) Decode(body []byte) (*Payload, error) {
	p, d, tags := &Payload{}, newDecoder(body), 0
	d.visit = func(element any) (isKept bool, err error) {
		switch e := element.(type) {
		case *Group:
			return false, w.Group(e)
		case *Bucket:
			return false, w.Bucket(e)
		}
		if tags++; tags > w.MaxTags {
			return false, fmt.Errorf("more than %d tags: %w", w.MaxTags, ErrLossy)
		}
		return true, nil
	}
	if err := d.value(reflect.ValueOf(p).Elem()); err != nil {
		return nil, fmt.Errorf("walk payload: %w", err)
	}
	return p, nil
}

// Latency is what a sketch says of the spans that it counts, in nanoseconds.
// Every value is off by the sketch's own 1 % at most.
type Latency struct {
	Count              float64
	Min, P50, P99, Max float64
}

// Latencies reads a group's two sketches.
func (g *Group) Latencies() (ok, failed Latency, err error) {
	if ok, err = latency(g.OkSummary); err != nil {
		return ok, failed, fmt.Errorf("ok summary: %w", err)
	}
	if failed, err = latency(g.ErrorSummary); err != nil {
		return ok, failed, fmt.Errorf("error summary: %w", err)
	}
	return ok, failed, nil
}

func latency(summary []byte) (l Latency, err error) {
	sketch, err := decodeSummary(summary)
	if err != nil || sketch.GetCount() == 0 {
		return l, err
	}
	values, err := sketch.GetValuesAtQuantiles([]float64{0, 0.5, 0.99, 1})
	if err != nil {
		return l, fmt.Errorf("read sketch: %w", err)
	}
	return Latency{
		Count: sketch.GetCount(), Min: values[0], P50: values[1], P99: values[2],
		Max: values[3],
	}, nil
}

// MaxProblems is how many are kept as texts.
const MaxProblems = 100

// Problems is what the agent would take and show wrongly, or not show.
func (p *Payload) Problems() (problems []string) {
	note := func(format string, args ...any) {
		if len(problems) < MaxProblems {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	p.Check(true, note, func(*Group, ...*ddsketch.DDSketch) {})
	return problems
}

// The agent's own sketches: what it merges all others into.
const (
	relativeAccuracy = 0.01
	maxBins          = 2048
)

// NewSketch is an empty sketch of the agent's own kind.
func NewSketch() *ddsketch.DDSketch {
	s, err := ddsketch.LogCollapsingLowestDenseDDSketch(relativeAccuracy, maxBins)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	return s
}

// decodeSummary reads a sketch with the library. An absent one is empty.
func decodeSummary(raw []byte) (*ddsketch.DDSketch, error) {
	if len(raw) == 0 {
		return NewSketch(), nil
	}
	var message sketchpb.DDSketch
	if err := proto.Unmarshal(raw, &message); err != nil {
		return nil, fmt.Errorf("decode sketch: %w", err)
	}
	if err := checkBins(&message); err != nil {
		return nil, fmt.Errorf("decode sketch: %w", err)
	}
	s, err := ddsketch.FromProto(&message)
	if err != nil {
		return nil, fmt.Errorf("decode sketch: %w", err)
	}
	if !s.IndexMapping.Equals(NewSketch().IndexMapping) {
		return nil, fmt.Errorf("decode sketch: mapping %v is not the agent's, logarithmic to 1 %%",
			message.Mapping)
	}
	return s, nil
}

// maxBinIndex is beyond what any duration has, some 2200. A dense store of the
// library takes memory for every bin between the lowest and the highest.
const maxBinIndex = 1 << 15

// checkBins refuses indexes that no duration has and counts that count nothing.
func checkBins(message *sketchpb.DDSketch) error {
	for _, store := range []*sketchpb.Store{message.PositiveValues, message.NegativeValues} {
		first := int(store.GetContiguousBinIndexOffset())
		for i, count := range store.GetContiguousBinCounts() {
			if err := checkBin(first+i, count); err != nil {
				return err
			}
		}
		for index, count := range store.GetBinCounts() {
			if err := checkBin(int(index), count); err != nil {
				return err
			}
		}
	}
	return checkBin(0, message.ZeroCount)
}

func checkBin(index int, count float64) error {
	if index < -maxBinIndex || index > maxBinIndex {
		return fmt.Errorf("bin %d is outside any duration", index)
	}
	if !(count >= 0) || math.IsInf(count, 0) {
		return fmt.Errorf("bin %d counts %v", index, count)
	}
	return nil
}
