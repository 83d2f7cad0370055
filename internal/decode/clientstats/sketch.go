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

// Why a body can't be merged.
var (
	ErrUnparsable   = errors.New("read statistics: the body is not what the endpoint takes")
	ErrIncompatible = errors.New("read statistics: they can't be added up exactly")
	ErrMapping      = errors.New("read statistics: a sketch has a mapping that the agent does not know")
)

// maxSketchBytes bounds what one sketch makes the protobuf library hold. One with all
// bins that there can be, each written by itself, takes half of it.
const maxSketchBytes = 1 << 18

// maxHits is how many spans a group or a bin may have: far beyond what anybody counts
// in ten seconds, and few enough that a million such can be added up exactly.
const maxHits = 1 << 40

// wholeSketch is whole counts of durations, in bins that its mapping has.
type wholeSketch struct {
	mapping     sketch.Mapping
	first, last int64 // bins of the mapping
	zeros       uint64
	bins        []sketch.Bin
}

// read reads what the agent reads, with the agent's library. The bins are appended to
// those that the sketch has.
func (s *wholeSketch) read(encoded []byte) error {
	var message sketchpb.DDSketch
	if len(encoded) > maxSketchBytes || proto.Unmarshal(encoded, &message) != nil || hasUnknown(&message) {
		return ErrIncompatible
	}
	s.mapping = sketch.Mapping{}
	if m := message.Mapping; m != nil {
		s.mapping = sketch.Mapping{
			Gamma: m.Gamma, Offset: m.IndexOffset, Interpolation: int32(m.Interpolation),
		}
	}
	var err error
	if s.first, s.last, err = s.mapping.Range(); err != nil {
		return ErrMapping
	}
	negative := message.NegativeValues // no duration is; some tracers say where such bins would begin
	zeros, ok := whole(message.ZeroCount)
	if !ok || len(negative.GetBinCounts())+len(negative.GetContiguousBinCounts()) > 0 {
		return ErrIncompatible
	}
	s.zeros = zeros
	positive := message.PositiveValues
	for i, count := range positive.GetContiguousBinCounts() {
		ok = ok && s.append(int64(positive.ContiguousBinIndexOffset)+int64(i), count)
	}
	for _, index := range slices.Sorted(maps.Keys(positive.GetBinCounts())) {
		ok = ok && s.append(int64(index), positive.BinCounts[index])
	}
	if !ok {
		return ErrIncompatible
	}
	return nil
}

// hasUnknown reports whether there are fields that the library has no place for:
// nothing of them may be lost.
func hasUnknown(m *sketchpb.DDSketch) bool {
	known := func(m proto.Message) bool { return len(m.ProtoReflect().GetUnknown()) == 0 }
	return !known(m) || !known(m.Mapping) || !known(m.PositiveValues) || !known(m.NegativeValues)
}

// append appends a bin that holds anything, if the mapping has such a bin.
func (s *wholeSketch) append(index int64, count float64) bool {
	spans, ok := whole(count)
	if !ok || spans == 0 {
		return ok
	}
	if index < s.first || index > s.last {
		return false
	}
	s.bins = append(s.bins, sketch.Bin{Index: uint16(index), Spans: spans})
	return true
}

// whole is a count of spans, which is none where it is not whole.
func whole(count float64) (spans uint64, ok bool) {
	if !(count >= 0 && count <= maxHits) || count != math.Trunc(count) {
		return 0, false
	}
	return uint64(count), true
}
