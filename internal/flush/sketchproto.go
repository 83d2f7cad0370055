package flush

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// The wire tags of sketchpb: a field number and a wire type each.
const (
	tagMapping   = 1<<3 | 2 // DDSketch.mapping
	tagPositive  = 2<<3 | 2 // DDSketch.positiveValues
	tagNegative  = 3<<3 | 2 // DDSketch.negativeValues
	tagZeroCount = 4<<3 | 1 // DDSketch.zeroCount
	tagGamma     = 1<<3 | 1 // IndexMapping.gamma
	tagSparse    = 1<<3 | 2 // Store.binCounts, one entry
	tagDense     = 2<<3 | 2 // Store.contiguousBinCounts, packed
	tagOffset    = 3 << 3   // Store.contiguousBinIndexOffset
	tagIndex     = 1 << 3   // key of a binCounts entry
	tagCount     = 2<<3 | 1 // value of a binCounts entry
)

// sketchHead is the encoded mapping, the same for every sketch: logarithmic,
// with the library's own bits of gamma. Offset and interpolation are zero and
// so are left out, as protobuf does.
var sketchHead = func() []byte {
	m, err := mapping.NewLogarithmicMapping(aggregate.RelativeAccuracy)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	head := []byte{tagMapping, 9, tagGamma}
	return binary.LittleEndian.AppendUint64(head, math.Float64bits(m.ToProto().Gamma))
}()

// sketchEncoder writes sketches as protobuf by hand: the library first copies
// every bin between the lowest and the highest into a message, zeros included.
//
// A store of the format has two parts, and a bin's count is the sum of both: a
// run of neighbouring bins at 8 bytes each, and single bins at 13 or 14. So the
// crowded middle of a distribution goes into the run and its thin ends are
// listed, split where that is smallest.
type sketchEncoder struct {
	bins        []aggregate.Bin
	first, last int // of the bins in the run
	store       int // length of the store
	zeros       float64
}

// take reads a sketch and returns how long append will make it, so that it is
// written once, where it belongs.
func (e *sketchEncoder) take(s *aggregate.Sketch) (length int) {
	e.bins, e.zeros = s.AppendBins(e.bins[:0]), s.Zeros()
	e.first, e.last, e.store = split(e.bins)
	length = len(sketchHead) + 1 + uvarintSize(uint64(e.store)) + e.store + 2
	if e.zeros != 0 {
		length += 1 + 8
	}
	return length
}

// append appends the sketch that was taken. Both stores always stand there, as in
// what the agent's own code sends.
func (e *sketchEncoder) append(dst []byte) []byte {
	dst = append(dst, sketchHead...)
	dst = binary.AppendUvarint(append(dst, tagPositive), uint64(e.store))
	dst = appendSparse(dst, e.bins[:e.first])
	dst = appendSparse(dst, e.bins[e.last:])
	dst = appendDense(dst, e.bins[e.first:e.last])
	dst = append(dst, tagNegative, 0)
	if e.zeros != 0 {
		dst = appendDouble(append(dst, tagZeroCount), e.zeros)
	}
	return dst
}

// split chooses the bins from first up to last for the run, and says how long
// the store becomes.
//
// A bin in the run saves its entry and costs 8 bytes, and 8 more for each empty
// one before it, so the best run is the stretch with the largest sum. One bin is
// worth a run already: 13 bytes with its offset, against 14 for its entry.
//
// A sum and the places of its bins are kept in one number, the sum above, so that
// the larger of two is found without a jump: which it is can't be guessed, and
// this loop was a fifth of the flush.
func split(bins []aggregate.Bin) (first, last, size int) {
	if len(bins) == 0 {
		return 0, 0, 0
	}
	const place = 12 // bits; there are at most 2048 bins
	sparse, sum, best := 0, 0, 0
	next := bins[0].Index // were there no gap
	for i, b := range bins {
		entry := 2 + sparseEntry(b.Index)
		sparse += entry
		sum = max(sum-int(b.Index-next)*8<<place, i) + (entry-8)<<place // and where it begins
		best = max(best, sum<<place|i)                                  // and where it ends
		next = b.Index + 1
	}
	first, last = best>>place&(1<<place-1), best&(1<<place-1)+1
	run := bins[first:last]
	return first, last, sparse - best>>(2*place) - 8*spread(run) + denseSize(run)
}

// spread is how many bins lie between the lowest and the highest, both included.
func spread(bins []aggregate.Bin) int {
	return int(bins[len(bins)-1].Index-bins[0].Index) + 1
}

// denseSize is the length of a run of packed doubles from the lowest bin on.
func denseSize(bins []aggregate.Bin) int {
	if len(bins) == 0 {
		return 0
	}
	doubles := 8 * spread(bins)
	size := 1 + uvarintSize(uint64(doubles)) + doubles
	if bins[0].Index != 0 {
		size += 1 + uvarintSize(zigzag(bins[0].Index))
	}
	return size
}

func appendDense(dst []byte, bins []aggregate.Bin) []byte {
	if len(bins) == 0 {
		return dst
	}
	doubles := 8 * spread(bins)
	dst = append(dst, tagDense)
	dst = binary.AppendUvarint(dst, uint64(doubles))
	start := len(dst)
	dst = slices.Grow(dst, doubles)[:start+doubles]
	run := dst[start:]
	clear(run)
	for _, b := range bins {
		binary.LittleEndian.PutUint64(run[8*(b.Index-bins[0].Index):], math.Float64bits(b.Count))
	}
	if bins[0].Index != 0 {
		dst = binary.AppendUvarint(append(dst, tagOffset), zigzag(bins[0].Index))
	}
	return dst
}

// sparseEntry is the length of one entry. An index of 64 or more takes two bytes,
// and no duration's takes three.
func sparseEntry(index int32) int {
	if index < 64 {
		return 1 + 1 + 1 + 8
	}
	return 1 + 2 + 1 + 8
}

func appendSparse(dst []byte, bins []aggregate.Bin) []byte {
	for _, b := range bins {
		if b.Index < 64 {
			dst = append(dst, tagSparse, 11, tagIndex, byte(2*b.Index), tagCount)
		} else {
			dst = append(dst, tagSparse, 12, tagIndex, byte(2*b.Index)|0x80, byte(b.Index>>6), tagCount)
		}
		dst = appendDouble(dst, b.Count)
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
