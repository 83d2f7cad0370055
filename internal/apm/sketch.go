package apm

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"google.golang.org/protobuf/encoding/protowire"
)

// maxHits is how many spans a group may have, or a bin: far beyond what anybody
// counts in ten seconds, and few enough that a million such can be added up.
const maxHits = 1 << 40

// maxBins and maxDense bound what one body and one sketch may make us hold: 8 MB,
// and 64 KB, all bins that there are.
const (
	maxBins  = 1 << 19
	maxDense = 1 << 13
)

// sketchReader reads a sketch as protobuf: whole counts of durations, of a mapping
// that the agent would accept.
type sketchReader struct {
	bins    []aggregate.Bin
	unfit   bool
	foreign bool // of a mapping that the agent would not accept
	mapping aggregate.Mapping
	zeros   uint64
	dense   []float64 // of the stretch
	offset  int64
	listed  [maxDense / 64]uint64 // a bit for each bin that stands by itself

	accepted aggregate.Mapping // the last one, for most sketches are of the same
}

// next is the reader of the next sketch.
func (s *sketchReader) next() sketchReader {
	return sketchReader{dense: s.dense[:0], accepted: s.accepted}
}

// read appends a sketch's bins to list. It reports false where the sketch can't be
// added up exactly.
func (s *sketchReader) read(b []byte, list []aggregate.Bin) (bins aggregate.Bins, rest []aggregate.Bin, ok bool) {
	first := len(list)
	*s = s.next()
	s.bins = list
	s.fields(b, func(number protowire.Number, kind protowire.Type, value []byte, bits uint64) {
		switch {
		case number == 1 && kind == protowire.BytesType:
			s.fields(value, s.mappingField)
		case number == 2 && kind == protowire.BytesType:
			s.fields(value, s.storeField)
		case number == 3 && kind == protowire.BytesType:
			s.fields(value, s.negativeField)
		case number == 4 && kind == protowire.Fixed64Type:
			s.zeros = s.whole(math.Float64frombits(bits))
		default:
			s.unfit = true
		}
	})
	for i, count := range s.dense {
		s.bin(s.offset+int64(i), count)
	}
	if s.unfit || !s.isAccepted() || !s.haveBins(s.bins[first:]) {
		return bins, list, false
	}
	return aggregate.Bins{Zeros: s.zeros, List: s.bins[first:len(s.bins):len(s.bins)]}, s.bins, true
}

// isAccepted says whether the agent would accept the mapping.
func (s *sketchReader) isAccepted() bool {
	if s.mapping == aggregate.OwnMapping || s.mapping == s.accepted && s.mapping.Gamma > 0 {
		return true
	}
	if _, err := s.mapping.Library(); err != nil {
		s.foreign = true
		return false
	}
	s.accepted = s.mapping
	return true
}

// haveBins says whether the mapping has such bins. It stands before its bins or
// behind them.
func (s *sketchReader) haveBins(list []aggregate.Bin) bool {
	last := s.mapping.LastBin()
	for _, bin := range list {
		if int64(bin.Index) > last {
			return false
		}
	}
	return true
}

// fields visits the fields of a message. A number is given as its bits.
func (s *sketchReader) fields(b []byte, visit func(protowire.Number, protowire.Type, []byte, uint64)) {
	for len(b) > 0 && !s.unfit {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			s.unfit = true
			return
		}
		b = b[n:]
		var value []byte
		var bits uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(b)
		case protowire.Fixed64Type:
			bits, n = protowire.ConsumeFixed64(b)
		case protowire.VarintType:
			bits, n = protowire.ConsumeVarint(b)
		default:
			n = -1
		}
		if n < 0 {
			s.unfit = true
			return
		}
		b = b[n:]
		visit(number, kind, value, bits)
	}
}

func (s *sketchReader) mappingField(number protowire.Number, kind protowire.Type, _ []byte, bits uint64) {
	switch {
	case number == 1 && kind == protowire.Fixed64Type:
		s.mapping.Gamma = math.Float64frombits(bits)
	case number == 2 && kind == protowire.Fixed64Type:
		s.mapping.Offset = math.Float64frombits(bits)
	case number == 3 && kind == protowire.VarintType:
		s.mapping.Interpolation = int32(bits)
	default:
		s.unfit = true
	}
}

func (s *sketchReader) storeField(number protowire.Number, kind protowire.Type, value []byte, bits uint64) {
	switch {
	case number == 1 && kind == protowire.BytesType:
		s.entry(value)
	case number == 2 && kind == protowire.BytesType && len(value)%8 == 0: // packed
		for ; len(value) > 0 && !s.unfit; value = value[8:] {
			bits, _ := protowire.ConsumeFixed64(value)
			s.append(math.Float64frombits(bits))
		}
	case number == 2 && kind == protowire.Fixed64Type:
		s.append(math.Float64frombits(bits))
	case number == 3 && kind == protowire.VarintType:
		s.offset = signed(bits)
	default:
		s.unfit = true
	}
}

// negativeField is one of the store for what is negative, which no duration is: some
// tracers say that it begins at bin 0, and it has no bins.
func (s *sketchReader) negativeField(number protowire.Number, kind protowire.Type, value []byte, _ uint64) {
	isEmpty := number == 2 && kind == protowire.BytesType && len(value) == 0
	isOffset := number == 3 && kind == protowire.VarintType
	s.unfit = s.unfit || !isEmpty && !isOffset
}

// signed is a number of the format's sint32.
func signed(bits uint64) int64 { return int64(int32(protowire.DecodeZigZag(bits & math.MaxUint32))) }

// append takes the count of the next bin of the stretch, whose place is known at its
// end.
func (s *sketchReader) append(count float64) {
	s.unfit = s.unfit || len(s.dense) >= maxDense
	s.dense = append(s.dense, count)
}

// entry is one bin that stands by itself.
func (s *sketchReader) entry(b []byte) {
	var index int64
	var count float64
	s.fields(b, func(number protowire.Number, kind protowire.Type, _ []byte, bits uint64) {
		switch {
		case number == 1 && kind == protowire.VarintType:
			index = signed(bits)
		case number == 2 && kind == protowire.Fixed64Type:
			count = math.Float64frombits(bits)
		default:
			s.unfit = true
		}
	})
	s.bin(index, count)
	if s.unfit || index < 0 || index >= maxDense {
		return
	}
	bit := uint64(1) << (index % 64)
	s.unfit = s.listed[index/64]&bit != 0 // the last of two would count alone
	s.listed[index/64] |= bit
}

func (s *sketchReader) bin(index int64, count float64) {
	spans := s.whole(count)
	switch {
	case spans == 0:
	case index < 0 || index >= maxDense || len(s.bins) >= maxBins:
		s.unfit = true
	default:
		s.bins = append(s.bins, aggregate.Bin{Index: uint16(index), Spans: spans})
	}
}

// whole is a count of spans.
func (s *sketchReader) whole(count float64) uint64 {
	if !(count >= 0 && count <= maxHits) || count != math.Trunc(count) {
		s.unfit = true
		return 0
	}
	return uint64(count)
}
