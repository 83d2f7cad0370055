package flush

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/sketch"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// The wire tags of sketchpb: a field number and a wire type each.
const (
	tagMapping       = 1<<3 | 2 // DDSketch.mapping
	tagPositive      = 2<<3 | 2 // DDSketch.positiveValues
	tagNegative      = 3<<3 | 2 // DDSketch.negativeValues
	tagZeroCount     = 4<<3 | 1 // DDSketch.zeroCount
	tagGamma         = 1<<3 | 1 // IndexMapping.gamma
	tagIndexOffset   = 2<<3 | 1 // IndexMapping.indexOffset
	tagInterpolation = 3 << 3   // IndexMapping.interpolation
	tagSparse        = 1<<3 | 2 // Store.binCounts, one entry
	tagDense         = 2<<3 | 2 // Store.contiguousBinCounts, packed
	tagOffset        = 3 << 3   // Store.contiguousBinIndexOffset
	tagIndex         = 1 << 3   // key of a binCounts entry
	tagCount         = 2<<3 | 1 // value of a binCounts entry
)

// sketchHead is an encoded mapping. What is zero is left out, as protobuf does it.
func sketchHead(m sketch.Mapping) []byte {
	b := appendDouble([]byte{tagMapping, 0, tagGamma}, m.Gamma)
	if m.Offset != 0 {
		b = appendDouble(append(b, tagIndexOffset), m.Offset)
	}
	if m.Interpolation != 0 {
		b = binary.AppendUvarint(append(b, tagInterpolation), uint64(m.Interpolation))
	}
	b[1] = byte(len(b) - 2)
	return b
}

// sketchEncoder writes sketches as protobuf by hand: the library first copies
// every bin between the lowest and the highest into a message, zeros included.
//
// A store of the format has two parts, and a bin's count is the sum of both: one
// stretch of neighbouring bins at 8 bytes each, empty ones too, and single bins at
// 13 or 14. So the crowded middle of a distribution goes into the stretch and its
// thin ends are listed, split where that is smallest.
type sketchEncoder struct {
	heads       [][]byte // encoded mappings, by number
	head        []byte   // of the sketch
	sketch      *sketch.Sketch
	runs        []sketch.Run
	first, last int // of the runs in the stretch
	store       int // length of the store
	zeros       float64
}

// of makes ready for the sketches of a sealed cycle.
func (e *sketchEncoder) of(sealed *aggregate.Sealed) {
	e.heads = e.heads[:0]
	for _, m := range sealed.Mappings() {
		e.heads = append(e.heads, sketchHead(m))
	}
}

// take reads a sketch and returns how long append will make it, so that it is
// written once, where it belongs.
func (e *sketchEncoder) take(s *sketch.Sketch, mapping sketch.MappingID) (length int) {
	e.head = e.heads[mapping]
	e.sketch, e.runs, e.zeros = s, s.AppendRuns(e.runs[:0], mapping), s.Zeros()
	e.first, e.last, e.store = split(e.runs)
	length = len(e.head) + 1 + uvarintSize(uint64(e.store)) + e.store + 2
	if e.zeros != 0 {
		length += 1 + 8
	}
	return length
}

// append appends the sketch that was taken. Both stores always stand there, as in
// what the agent's own code sends.
func (e *sketchEncoder) append(dst []byte) []byte {
	dst = append(dst, e.head...)
	dst = binary.AppendUvarint(append(dst, tagPositive), uint64(e.store))
	dst = appendSparse(dst, e.sketch, e.runs[:e.first])
	dst = appendSparse(dst, e.sketch, e.runs[e.last:])
	dst = appendDense(dst, e.sketch, e.runs[e.first:e.last])
	dst = append(dst, tagNegative, 0)
	if e.zeros != 0 {
		dst = appendDouble(append(dst, tagZeroCount), e.zeros)
	}
	return dst
}

// split chooses the runs from first up to last for the stretch, and says how long
// the store becomes.
//
// A bin in the stretch saves its entry and costs 8 bytes, and each empty one 8
// more, so the best is the one with the largest sum. One bin is worth a stretch
// already: 13 bytes with its offset, against 14 for its entry.
//
// A sum and the places of its runs are kept in one number, the sum above, so that
// the larger of two is found without a jump: which it is can't be guessed, and
// this loop was a fifth of the flush.
func split(runs []sketch.Run) (first, last, size int) {
	if len(runs) == 0 {
		return 0, 0, 0
	}
	const place = 12 // bits; there are 8192 bins, and so 4096 runs, at most
	sparse, sum, best := 0, 0, 0
	end := runs[0].First
	for i, r := range runs {
		listed := sparseSize(r)
		sparse += listed
		sum = max(sum-int(r.First-end)*8<<place, i) + (listed-8*r.Len())<<place // and where it begins
		best = max(best, sum<<place|i)                                          // and where it ends
		end = r.End
	}
	first, last = best>>place&(1<<place-1), best&(1<<place-1)+1
	stretch := runs[first:last]
	return first, last, sparse - best>>(2*place) - 8*spread(stretch) + denseSize(stretch)
}

// spread is how many bins lie between the lowest and the highest, both included.
func spread(runs []sketch.Run) int {
	return int(runs[len(runs)-1].End - runs[0].First)
}

// denseSize is the length of a stretch of packed doubles from the lowest bin on.
func denseSize(runs []sketch.Run) int {
	doubles := 8 * spread(runs)
	size := 1 + uvarintSize(uint64(doubles)) + doubles
	if runs[0].First != 0 {
		size += 1 + uvarintSize(zigzag(runs[0].First))
	}
	return size
}

func appendDense(dst []byte, s *sketch.Sketch, runs []sketch.Run) []byte {
	if len(runs) == 0 {
		return dst
	}
	doubles := 8 * spread(runs)
	dst = binary.AppendUvarint(append(dst, tagDense), uint64(doubles))
	start := len(dst)
	dst = slices.Grow(dst, doubles)[:start+doubles]
	end := runs[0].First
	for _, r := range runs {
		gap := 8 * int(r.First-end)
		clear(dst[start : start+gap])
		start += gap
		for _, count := range s.Counts(r) {
			binary.LittleEndian.PutUint64(dst[start:], math.Float64bits(float64(count)))
			start += 8
		}
		end = r.End
	}
	if first := runs[0].First; first != 0 {
		dst = binary.AppendUvarint(append(dst, tagOffset), zigzag(first))
	}
	return dst
}

// An entry of a single bin: its tag and length, its index, its count. An index of
// 64 or more takes two bytes, and none takes three.
const (
	nearEntry = 2 + 1 + 1 + 1 + 8
	farEntry  = 2 + 1 + 2 + 1 + 8
	far       = 64
)

// sparseSize is the length of a run's bins as entries.
func sparseSize(r sketch.Run) int {
	near := min(max(far-int(r.First), 0), r.Len())
	return farEntry*r.Len() - (farEntry-nearEntry)*near
}

func appendSparse(dst []byte, s *sketch.Sketch, runs []sketch.Run) []byte {
	for _, r := range runs {
		for i, count := range s.Counts(r) {
			index := uint(r.First) + uint(i)
			if index < far {
				dst = append(dst, tagSparse, nearEntry-2, tagIndex, byte(2*index), tagCount)
			} else {
				dst = append(dst, tagSparse, farEntry-2, tagIndex, byte(2*index)|0x80, byte(index/far), tagCount)
			}
			dst = appendDouble(dst, float64(count))
		}
	}
	return dst
}

func appendDouble(dst []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

// zigzag is protobuf's sint32: small magnitudes of either sign stay short.
func zigzag(n int32) uint64 { return uint64(uint32(n<<1) ^ uint32(n>>31)) }

// uvarintSize is the length of n in groups of seven bits.
func uvarintSize(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }
