package agent

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of sketchpb.
const (
	fieldMapping       = 1 // of DDSketch
	fieldPositive      = 2
	fieldNegative      = 3
	fieldZeroCount     = 4
	fieldGamma         = 1 // of IndexMapping
	fieldIndexOffset   = 2
	fieldInterpolation = 3
	fieldSparse        = 1 // of Store: binCounts, one entry
	fieldDense         = 2 // contiguousBinCounts, packed
	fieldDenseOffset   = 3 // contiguousBinIndexOffset
	fieldIndex         = 1 // of an entry of binCounts
	fieldCount         = 2
)

// sketchEncoder writes sketches as protobuf. It does not create the library's message, because that
// would copy every bin between the lowest and the highest.
//
// A store of the format has two parts, and the count of a bin is the sum of both: a contiguous
// range of bins with 8 bytes per bin, including empty ones, and single bins with 13 or 14 bytes. So
// the dense middle of a distribution is written as a range, and the sparse ends as single bins. The
// split minimizes the length.
type sketchEncoder struct {
	mappings [][]byte // encoded, by MappingID
	runs     []sketch.Run
	store    []byte
	encoded  []byte
}

// begin encodes the mappings of a sealed cycle.
func (e *sketchEncoder) begin(sealed *aggregate.Sealed) {
	e.mappings = e.mappings[:0]
	for _, m := range sealed.Mappings() {
		e.mappings = append(e.mappings, appendMapping(nil, m))
	}
}

// encode returns the encoded sketch, which is valid until the next call. Like the agent's own code,
// it always writes both stores.
func (e *sketchEncoder) encode(s *sketch.Sketch, mapping sketch.MappingID) []byte {
	e.runs = s.AppendRuns(e.runs[:0], mapping)
	first, last := denseRange(e.runs)
	store := appendSparse(e.store[:0], s, e.runs[:first])
	store = appendSparse(store, s, e.runs[last:])
	e.store = appendDense(store, s, e.runs[first:last])

	b := append(e.encoded[:0], e.mappings[mapping]...)
	b = protolite.AppendBytes(b, fieldPositive, e.store)
	b = protolite.AppendBytes(b, fieldNegative, "")
	if zeros := s.Zeros(); zeros != 0 {
		b = protolite.AppendDouble(b, fieldZeroCount, zeros)
	}
	e.encoded = b
	return b
}

// denseRange returns the runs, from first up to but excluding last, to write as a contiguous range.
// Each bin in the range costs 8 bytes and saves its single entry, and each empty bin in between
// costs 8 bytes. So the best range is the one with the largest sum of savings (Kadane's algorithm).
// A range of one bin is already shorter than an entry.
func denseRange(runs []sketch.Run) (first, last int) {
	best, saved, start := 0, 0, 0
	for i, r := range runs {
		if i > 0 {
			saved -= 8 * int(r.First-runs[i-1].End)
		}
		if saved <= 0 {
			saved, start = 0, i
		}
		saved += sparseSize(r) - 8*r.Len()
		if saved >= best {
			best, first, last = saved, start, i+1
		}
	}
	return first, last
}

// The length of the entry of a single bin: tag and length, index, count. An index of 64 or more takes two
// bytes.
const (
	nearEntry = 2 + 1 + 1 + 1 + 8
	farEntry  = 2 + 1 + 2 + 1 + 8
	far       = 64
)

// sparseSize returns the length of a run's bins as single entries.
func sparseSize(r sketch.Run) int {
	oneByteIndexes := min(max(far-int(r.First), 0), r.Len())
	return farEntry*r.Len() - (farEntry-nearEntry)*oneByteIndexes
}

// appendSparse writes the bins of runs as single entries. It writes tags as bytes, because a sketch
// of scattered durations consists mostly of such entries.
func appendSparse(b []byte, s *sketch.Sketch, runs []sketch.Run) []byte {
	const (
		entry = fieldSparse<<3 | byte(protowire.BytesType)
		index = fieldIndex<<3 | byte(protowire.VarintType)
		count = fieldCount<<3 | byte(protowire.Fixed64Type)
	)
	for _, r := range runs {
		for i, spans := range s.Counts(r) {
			if at := uint(r.First) + uint(i); at < far {
				b = append(b, entry, nearEntry-2, index, byte(2*at), count)
			} else {
				b = append(b, entry, farEntry-2, index, byte(2*at)|0x80, byte(at/far), count)
			}
			b = protowire.AppendFixed64(b, math.Float64bits(float64(spans)))
		}
	}
	return b
}

// appendDense writes the bins of runs as one contiguous range, with zeros between the runs.
func appendDense(b []byte, s *sketch.Sketch, runs []sketch.Run) []byte {
	if len(runs) == 0 {
		return b
	}
	first, end := runs[0].First, runs[len(runs)-1].End
	b = protolite.AppendHead(b, fieldDense, 8*int(end-first))
	at := first
	for _, r := range runs {
		for ; at < r.First; at++ {
			b = protowire.AppendFixed64(b, 0)
		}
		for _, count := range s.Counts(r) {
			b = protowire.AppendFixed64(b, math.Float64bits(float64(count)))
		}
		at = r.End
	}
	if first != 0 {
		b = protolite.AppendVarint(b, fieldDenseOffset, protowire.EncodeZigZag(int64(first)))
	}
	return b
}

// appendMapping writes a mapping. Like protobuf, it omits fields that are zero.
func appendMapping(b []byte, m sketch.Mapping) []byte {
	fields := protolite.AppendDouble(nil, fieldGamma, m.Gamma)
	if m.Offset != 0 {
		fields = protolite.AppendDouble(fields, fieldIndexOffset, m.Offset)
	}
	if m.Interpolation != 0 {
		fields = protolite.AppendVarint(fields, fieldInterpolation, uint64(m.Interpolation))
	}
	return protolite.AppendBytes(b, fieldMapping, fields)
}
