package clientstats

import (
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"google.golang.org/protobuf/proto"
)

// Errors of Payload.Read.
var (
	ErrUnparsable   = errors.New("read statistics: the body is not in the format of the endpoint")
	ErrIncompatible = errors.New("read statistics: they can't be merged exactly")
	ErrMapping      = errors.New("read statistics: a sketch has a mapping that the agent does not support")
)

// maxSketchBytes is the maximum length of a sketch, which bounds the memory that the protobuf library
// allocates. A sketch with all possible bins, encoded separately, takes half of it.
const maxSketchBytes = 1 << 18

// maxHits is the maximum number of spans in a group or a bin. It is far more than a tracer can count in
// ten seconds, but a million such numbers can be added exactly as float64.
const maxHits = 1 << 40

// sketchReader decodes a sketch with integer counts, and appends its bins to bins.
type sketchReader struct {
	mapping            sketch.Mapping
	minIndex, maxIndex int64 // range of bin indexes that the mapping can produce
	zeros              uint64
	bins               []sketch.Bin
}

// read decodes a sketch, a histogram in the protobuf format of the DDSketch library. It returns
// ErrMapping if the Datadog agent does not support the mapping from values to bins. It returns
// ErrIncompatible if the sketch is invalid, too long, or contains anything that r cannot represent,
// such as negative values.
func (r *sketchReader) read(encoded []byte) error {
	if len(encoded) > maxSketchBytes {
		return ErrIncompatible
	}
	var message sketchpb.DDSketch
	if proto.Unmarshal(encoded, &message) != nil || hasUnknownFields(&message) {
		return ErrIncompatible
	}
	if err := r.readMapping(message.Mapping); err != nil {
		return err
	}
	// Durations are never negative. Some tracers encode an empty store for negative values.
	negative := message.NegativeValues
	hasNegative := len(negative.GetBinCounts())+len(negative.GetContiguousBinCounts()) > 0
	zeros, isZeroCountValid := toSpanCount(message.ZeroCount)
	if hasNegative || !isZeroCountValid {
		return ErrIncompatible
	}
	r.zeros = zeros
	areBinsValid := r.appendBins(message.PositiveValues)
	if !areBinsValid {
		return ErrIncompatible
	}
	return nil
}

// readMapping stores m, a mapping from values to histogram bins, and the range of bin indexes that it can
// produce. It returns ErrMapping if m is nil, or if the Datadog agent does not support it.
func (r *sketchReader) readMapping(m *sketchpb.IndexMapping) error {
	r.mapping = sketch.Mapping{
		Gamma: m.GetGamma(), Offset: m.GetIndexOffset(), Interpolation: int32(m.GetInterpolation()),
	}
	minIndex, maxIndex, err := r.mapping.Range()
	if err != nil {
		return ErrMapping
	}
	r.minIndex = minIndex
	r.maxIndex = maxIndex
	return nil
}

// hasUnknownFields reports whether a sketch, or a message in it, has protobuf fields that this version
// of package sketchpb does not define. Their content is unknown, so it cannot be merged with other
// sketches.
func hasUnknownFields(s *sketchpb.DDSketch) bool {
	for _, m := range []proto.Message{s, s.Mapping, s.PositiveValues, s.NegativeValues} {
		if len(m.ProtoReflect().GetUnknown()) > 0 {
			return true
		}
	}
	return false
}

// appendBins appends the bins of a store that are not empty. It returns false if a bin is invalid.
func (r *sketchReader) appendBins(store *sketchpb.Store) bool {
	firstIndex := int64(store.GetContiguousBinIndexOffset())
	for i, count := range store.GetContiguousBinCounts() {
		isValid := r.appendBin(firstIndex+int64(i), count)
		if !isValid {
			return false
		}
	}
	binCounts := store.GetBinCounts()
	for _, index := range slices.Sorted(maps.Keys(binCounts)) {
		isValid := r.appendBin(int64(index), binCounts[index])
		if !isValid {
			return false
		}
	}
	return true
}

// appendBin appends a histogram bin with count spans to r.bins, or nothing if count is 0. It returns false if count
// is not an integer from 0 to maxHits, or if the mapping of the sketch can't produce the index.
func (r *sketchReader) appendBin(index int64, count float64) bool {
	spans, isValid := toSpanCount(count)
	if !isValid {
		return false
	}
	if spans == 0 {
		return true
	}
	if index < r.minIndex || index > r.maxIndex {
		return false
	}
	r.bins = append(r.bins, sketch.Bin{Index: uint16(index), Spans: spans})
	return true
}

// toSpanCount converts a number of spans, which sketches store as a float, to an integer. isValid reports whether count
// is an integer from 0 to maxHits.
func toSpanCount(count float64) (spans uint64, isValid bool) {
	isInRange := count >= 0 && count <= maxHits // false for NaN
	isInteger := count == math.Trunc(count)
	if !isInRange || !isInteger {
		return 0, false
	}
	return uint64(count), true
}
