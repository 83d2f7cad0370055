package flush

import (
	"encoding/binary"
	"math"
	"math/bits"

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

// sketchMapping is that of every sketch: logarithmic, as the agent's is.
var sketchMapping = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(aggregate.RelativeAccuracy)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	return m
}()

// sketchHead is the encoded mapping, with the library's own bits of gamma.
// Offset and interpolation are zero and so are left out, as protobuf does.
var sketchHead = binary.LittleEndian.AppendUint64([]byte{tagMapping, 9, tagGamma}, math.Float64bits(sketchMapping.ToProto().Gamma))

// emptySketch is a sketch that saw nothing: both stores present and empty, the
// bytes that the agent's own code sends.
var emptySketch = append(append([]byte{}, sketchHead...), tagPositive, 0, tagNegative, 0)

// sketchEncoder writes sketches as protobuf by hand: the library first copies
// every bin between the lowest and the highest into a message, zeros included.
//
// A store of the format has two parts, and a bin's count is the sum of both: a
// run of neighbouring bins at 8 bytes each, and single bins at 13 or 14. So the
// crowded middle of a distribution goes into the run and its thin ends are
// listed, split where that is smallest.
type sketchEncoder struct {
	bins []aggregate.Bin
}

// append appends the encoded sketch.
func (e *sketchEncoder) append(dst []byte, s *aggregate.Sketch) []byte {
	e.bins = s.AppendBins(e.bins[:0])
	zeros := s.Zeros()
	if len(e.bins) == 0 && zeros == 0 {
		return append(dst, emptySketch...)
	}
	first, last, size := split(e.bins)
	dst = append(dst, sketchHead...)
	dst = binary.AppendUvarint(append(dst, tagPositive), uint64(size))
	dst = appendSparse(dst, e.bins[:first])
	dst = appendSparse(dst, e.bins[last:])
	dst = appendDense(dst, e.bins[first:last])
	dst = append(dst, tagNegative, 0)
	if zeros != 0 {
		dst = appendDouble(append(dst, tagZeroCount), zeros)
	}
	return dst
}

// split chooses the bins from first up to last for the run, and says how long
// the store becomes.
//
// A bin in the run saves its entry and costs 8 bytes, and 8 more for each empty
// one before it, so the best run is the stretch with the largest sum. One bin is
// worth a run already: 13 bytes with its offset, against 14 for its entry.
func split(bins []aggregate.Bin) (first, last, size int) {
	sparse, start, saved, most := 0, 0, 0, 0
	for i, b := range bins {
		if i > 0 {
			saved -= 8 * int(b.Index-bins[i-1].Index-1)
		}
		if saved <= 0 {
			start, saved = i, 0
		}
		entry := 2 + sparseEntry(b)
		sparse += entry
		if saved += entry - 8; saved > most {
			most, first, last = saved, start, i+1
		}
	}
	if last == 0 {
		return 0, 0, 0
	}
	run := bins[first:last]
	return first, last, sparse - most - 8*spread(run) + denseSize(run)
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
	dst = append(dst, tagDense)
	dst = binary.AppendUvarint(dst, uint64(8*spread(bins)))
	next := bins[0].Index
	for _, b := range bins {
		for ; next < b.Index; next++ {
			dst = appendDouble(dst, 0)
		}
		dst = appendDouble(dst, b.Count)
		next++
	}
	if bins[0].Index != 0 {
		dst = binary.AppendUvarint(append(dst, tagOffset), zigzag(bins[0].Index))
	}
	return dst
}

// sparseEntry is the length of one entry: always below 128, so its own length
// takes one byte.
func sparseEntry(b aggregate.Bin) int { return 1 + uvarintSize(zigzag(b.Index)) + 1 + 8 }

func appendSparse(dst []byte, bins []aggregate.Bin) []byte {
	for _, b := range bins {
		dst = append(dst, tagSparse, byte(sparseEntry(b)), tagIndex)
		dst = binary.AppendUvarint(dst, zigzag(b.Index))
		dst = appendDouble(append(dst, tagCount), b.Count)
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
