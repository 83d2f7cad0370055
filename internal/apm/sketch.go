package apm

import (
	"math"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"google.golang.org/protobuf/encoding/protowire"
)

// gamma is that of the agent's own mapping, to the last bit. Sketches of this
// mapping can be added up bin by bin; those of any other would have to be
// converted, which moves spans between bins.
var gamma = func() float64 {
	m, err := mapping.NewLogarithmicMapping(aggregate.RelativeAccuracy)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	return m.ToProto().Gamma
}()

// maxHits is how many spans a group may have, or a bin: far beyond what anybody
// counts in ten seconds, and few enough that a million such can be added up.
const maxHits = 1 << 40

// maxBins and maxDense bound what one body and one sketch may make us hold: 8 MB,
// and 32 KB.
const (
	maxBins  = 1 << 19
	maxDense = 1 << 12
)

// sketchReader reads a sketch as protobuf, of the agent's own mapping and with
// whole counts of durations. Anything else makes it foreign.
type sketchReader struct {
	bins    []aggregate.Bin
	foreign bool
	gamma   float64
	zeros   uint64
	dense   []float64 // of the stretch
	offset  int64
	listed  [aggregate.LastBin/64 + 1]uint64 // a bit for each bin that stands by itself
}

// read appends a sketch's bins to list. It reports false where the sketch is
// foreign.
func (s *sketchReader) read(b []byte, list []aggregate.Bin) (bins aggregate.Bins, rest []aggregate.Bin, ok bool) {
	first := len(list)
	*s = sketchReader{bins: list, dense: s.dense[:0]}
	s.fields(b, func(number protowire.Number, kind protowire.Type, value []byte, fixed float64) {
		switch {
		case number == 1 && kind == protowire.BytesType:
			s.fields(value, s.mapping)
		case number == 2 && kind == protowire.BytesType:
			s.fields(value, s.store)
		case number == 3 && kind == protowire.BytesType:
			s.foreign = s.foreign || len(value) > 0 // durations are not negative
		case number == 4 && kind == protowire.Fixed64Type:
			s.zeros = s.whole(fixed)
		default:
			s.foreign = true
		}
	})
	for i, count := range s.dense {
		s.bin(s.offset+int64(i), count)
	}
	if s.foreign || s.gamma != gamma {
		return bins, list, false
	}
	return aggregate.Bins{Zeros: s.zeros, List: s.bins[first:len(s.bins):len(s.bins)]}, s.bins, true
}

// fields visits the fields of a message. A number of 64 bits is given as the float
// that it is everywhere here, one of variable length as an integer in a float.
func (s *sketchReader) fields(b []byte, visit func(protowire.Number, protowire.Type, []byte, float64)) {
	for len(b) > 0 && !s.foreign {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			s.foreign = true
			return
		}
		b = b[n:]
		var value []byte
		var fixed float64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(b)
		case protowire.Fixed64Type:
			var bits uint64
			bits, n = protowire.ConsumeFixed64(b)
			fixed = math.Float64frombits(bits)
		case protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			fixed = float64(int32(protowire.DecodeZigZag(v & math.MaxUint32)))
		default:
			n = -1
		}
		if n < 0 {
			s.foreign = true
			return
		}
		b = b[n:]
		visit(number, kind, value, fixed)
	}
}

func (s *sketchReader) mapping(number protowire.Number, kind protowire.Type, _ []byte, fixed float64) {
	switch {
	case number == 1 && kind == protowire.Fixed64Type:
		s.gamma = fixed
	case fixed != 0: // an offset, an interpolation, or what we do not know
		s.foreign = true
	}
}

func (s *sketchReader) store(number protowire.Number, kind protowire.Type, value []byte, fixed float64) {
	switch {
	case number == 1 && kind == protowire.BytesType:
		s.entry(value)
	case number == 2 && kind == protowire.BytesType && len(value)%8 == 0: // packed
		for ; len(value) > 0 && !s.foreign; value = value[8:] {
			bits, _ := protowire.ConsumeFixed64(value)
			s.next(math.Float64frombits(bits))
		}
	case number == 2 && kind == protowire.Fixed64Type:
		s.next(fixed)
	case number == 3 && kind == protowire.VarintType:
		s.offset = int64(fixed)
	default:
		s.foreign = true
	}
}

// next is the count of the next bin of the stretch, whose place is known at its end.
func (s *sketchReader) next(count float64) {
	s.foreign = s.foreign || len(s.dense) >= maxDense
	s.dense = append(s.dense, count)
}

// entry is one bin that stands by itself.
func (s *sketchReader) entry(b []byte) {
	var index int64
	var count float64
	s.fields(b, func(number protowire.Number, kind protowire.Type, _ []byte, fixed float64) {
		switch {
		case number == 1 && kind == protowire.VarintType:
			index = int64(fixed)
		case number == 2 && kind == protowire.Fixed64Type:
			count = fixed
		default:
			s.foreign = true
		}
	})
	s.bin(index, count)
	if s.foreign || index < 0 || index > aggregate.LastBin {
		return
	}
	bit := uint64(1) << (index % 64)
	s.foreign = s.listed[index/64]&bit != 0 // the last of two would count alone
	s.listed[index/64] |= bit
}

func (s *sketchReader) bin(index int64, count float64) {
	spans := s.whole(count)
	switch {
	case spans == 0:
	case index < 0 || index > aggregate.LastBin || len(s.bins) >= maxBins:
		s.foreign = true
	default:
		s.bins = append(s.bins, aggregate.Bin{Index: uint16(index), Spans: spans})
	}
}

// whole is a count of spans.
func (s *sketchReader) whole(count float64) uint64 {
	if !(count >= 0 && count <= maxHits) || count != math.Trunc(count) {
		s.foreign = true
		return 0
	}
	return uint64(count)
}
