// Package payload decodes the statistics payloads of the Datadog agent's API as the agent does.
//
// `spanstatsd dump` prints payloads with it. The mock agent in lab/ and the tests of the encoder use it
// to verify the encoder. A Visitor decodes payloads of tracers without keeping all groups in memory.
//
// The package is at least as strict as the agent: it rejects nil instead of strings, arrays and maps,
// strings instead of binary, floats instead of integers, and negative counts. It accepts payloads that
// the agent accepts although it would show wrong numbers; Check reports these as problems.
//
// It shares no code with the encoder, so that they can't have the same bug. It reads msgpack with a
// library instead of internal/wire/msgpack, and sketches with the agent's own library.
//
// All functions can be called concurrently. Arrays and maps have at most maxElements elements, skipped
// values at most maxDepth levels, and sketches only bins for possible durations, so a small payload
// can't require more memory than the largest payloads of the agent.
package payload

import (
	"fmt"
	"math"
	"reflect"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"google.golang.org/protobuf/proto"
)

// Payload is a ClientStatsPayload.
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

// Group is a ClientGroupedStats: the statistics of the spans with the same labels.
type Group struct {
	Labels
	Hits, Errors, TopLevelHits, Duration uint64
	OkSummary, ErrorSummary              []byte
}

// Labels are the fields of a group that identify it. They are encoded next to the counts.
type Labels struct {
	Service, Name, Resource, Type, DBType, SpanKind string
	GRPCStatusCode, HTTPMethod, HTTPEndpoint        string
	ServiceSource                                   string `msgpack:"srv_src"`

	HTTPStatusCode uint32
	Synthetics     bool
	IsTraceRoot    int32

	PeerTags, AdditionalMetricTags, SpanDerivedPrimaryTags []string
}

// Visitor decodes payloads and passes their groups and buckets to functions instead of storing them.
// Other than Decode, it returns an error that wraps ErrLossy if a payload has unknown fields or too
// many tags.
type Visitor struct {
	MaxTags  int                 // maximum number of tags in all lists of a payload
	OnGroup  func(*Group) error  // called for each group; its strings and sketches are slices of the body
	OnBucket func(*Bucket) error // called for each bucket after its groups, without the groups
}

// Decode decodes a payload, and calls v.OnGroup for each group and v.OnBucket for each bucket. The returned
// payload has no buckets; its strings refer to body, which must not be modified. Decode returns an
// error if body is invalid, if it has more than v.MaxTags tags, or if v.OnGroup or v.OnBucket returns one.
func (v Visitor) Decode(body []byte) (*Payload, error) {
	p := &Payload{}
	d := newDecoder(body)
	tagCount := 0
	d.visit = func(element any) (isStored bool, err error) { // called for each element of a list
		switch e := element.(type) {
		case *Group:
			return false, v.OnGroup(e)
		case *Bucket:
			return false, v.OnBucket(e)
		default: // a string: all lists of strings contain tags
			tagCount++
			return true, v.checkTagCount(tagCount)
		}
	}
	if err := d.decodeValue(reflect.ValueOf(p).Elem()); err != nil {
		return nil, fmt.Errorf("visit payload: %w", err)
	}
	return p, nil
}

// checkTagCount returns an error if a payload has more than v.MaxTags tags.
func (v Visitor) checkTagCount(tagCount int) error {
	if tagCount > v.MaxTags {
		return fmt.Errorf("more than %d tags: %w", v.MaxTags, ErrLossy)
	}
	return nil
}

// Latency summarizes the durations in a sketch.
type Latency struct {
	Count              float64 // number of spans
	Min, P50, P99, Max float64 // nanoseconds, with the sketch's relative error of at most 1 %
}

// Latencies summarizes the durations of the successful spans and of the failed spans of a group.
func (g *Group) Latencies() (ok, failed Latency, err error) {
	ok, err = latency(g.OkSummary)
	if err != nil {
		return ok, failed, fmt.Errorf("ok summary: %w", err)
	}
	failed, err = latency(g.ErrorSummary)
	if err != nil {
		return ok, failed, fmt.Errorf("error summary: %w", err)
	}
	return ok, failed, nil
}

// latency decodes a sketch and summarizes its durations. The result is zero if the sketch is empty.
func latency(summary []byte) (l Latency, err error) {
	sketch, err := decodeSketch(summary)
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

// MaxProblems is the maximum number of problems that Problems returns.
const MaxProblems = 100

// Problems returns a description of each part of the payload that the Datadog agent accepts, but
// displays wrongly or ignores. An example is a bucket without groups. There are at most MaxProblems
// descriptions.
func (p *Payload) Problems() (problems []string) {
	report := func(format string, args ...any) {
		if len(problems) < MaxProblems {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	const weighted = true // groups whose hits differ from the spans in their sketches are not a problem
	ignoreGroup := func(*Group, ...*ddsketch.DDSketch) {}
	p.Check(weighted, report, ignoreGroup)
	return problems
}

// Parameters of the agent's own sketches, into which it merges all others.
const (
	relativeAccuracy = 0.01
	maxBins          = 2048
)

// NewSketch returns an empty sketch with the agent's parameters.
func NewSketch() *ddsketch.DDSketch {
	s, err := ddsketch.LogCollapsingLowestDenseDDSketch(relativeAccuracy, maxBins)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	return s
}

// decodeSketch decodes a sketch, a histogram in the protobuf format of the DDSketch library. It returns
// an empty sketch if encoded is empty. It returns an error if the sketch is invalid, or if the Datadog
// agent can't merge it, because its mapping from durations to bins is not the agent's.
func decodeSketch(encoded []byte) (*ddsketch.DDSketch, error) {
	if len(encoded) == 0 {
		return NewSketch(), nil
	}
	var message sketchpb.DDSketch
	if err := proto.Unmarshal(encoded, &message); err != nil {
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
		return nil, fmt.Errorf("decode sketch: mapping %v is not the agent's, which is logarithmic with 1 %% "+
			"accuracy",
			message.Mapping)
	}
	return s, nil
}

// maxBinIndex is the maximum index of a bin. The longest possible duration has about 2200, and the
// library's dense stores allocate memory for all bins between the lowest and the highest.
const maxBinIndex = 1 << 15

// checkBins returns an error if a bin of a sketch has an index outside the range from -maxBinIndex to
// maxBinIndex, or if a count, including the count of zeros, is negative, infinite or NaN.
func checkBins(message *sketchpb.DDSketch) error {
	for _, store := range []*sketchpb.Store{message.PositiveValues, message.NegativeValues} {
		firstIndex := int(store.GetContiguousBinIndexOffset())
		for i, count := range store.GetContiguousBinCounts() {
			if err := checkBin(firstIndex+i, count); err != nil {
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
