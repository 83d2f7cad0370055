package flush

import (
	"encoding/binary"
	"math"

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

// emptySketch is a sketch that saw nothing: both stores present and empty, the
// bytes that the agent's own code sends.
var emptySketch = append(append([]byte{}, sketchHead...), tagPositive, 0, tagNegative, 0)

type bin struct {
	index int32
	count float64
}

// sketchEncoder writes sketches as protobuf by hand: the library first copies
// every bin between the lowest and the highest into a message, and has no way
// to the sparse form, which is smaller where durations are few or far apart.
type sketchEncoder struct {
	bins []bin
	keep func(index int, count float64) // made once, so that visiting allocates nothing
}

func newSketchEncoder() *sketchEncoder {
	e := &sketchEncoder{}
	e.keep = func(index int, count float64) {
		e.bins = append(e.bins, bin{int32(index), count})
	}
	return e
}

// append appends the encoded sketch, or the empty one for nil.
func (e *sketchEncoder) append(dst []byte, s *aggregate.Sketch) []byte {
	if s == nil || s.Count() == 0 {
		return append(dst, emptySketch...)
	}
	e.bins = e.bins[:0]
	s.Bins(e.keep)
	dst = append(dst, sketchHead...)
	dst = append(dst, tagPositive)
	if dense, sparse := denseSize(e.bins), sparseSize(e.bins); dense <= sparse {
		dst = appendDense(binary.AppendUvarint(dst, uint64(dense)), e.bins)
	} else {
		dst = appendSparse(binary.AppendUvarint(dst, uint64(sparse)), e.bins)
	}
	dst = append(dst, tagNegative, 0)
	if zeros := s.Zeros(); zeros != 0 {
		dst = appendDouble(append(dst, tagZeroCount), zeros)
	}
	return dst
}

// spread is how many bins lie between the lowest and the highest, both included.
func spread(bins []bin) int { return int(bins[len(bins)-1].index) - int(bins[0].index) + 1 }

// denseSize is the length of the store as packed doubles from the lowest bin on.
func denseSize(bins []bin) int {
	if len(bins) == 0 {
		return 0
	}
	doubles := 8 * spread(bins)
	size := 1 + uvarintSize(uint64(doubles)) + doubles
	if bins[0].index != 0 {
		size += 1 + uvarintSize(zigzag(bins[0].index))
	}
	return size
}

func appendDense(dst []byte, bins []bin) []byte {
	if len(bins) == 0 {
		return dst
	}
	dst = append(dst, tagDense)
	dst = binary.AppendUvarint(dst, uint64(8*spread(bins)))
	next := bins[0].index
	for _, b := range bins {
		for ; next < b.index; next++ {
			dst = appendDouble(dst, 0)
		}
		dst = appendDouble(dst, b.count)
		next++
	}
	if bins[0].index != 0 {
		dst = binary.AppendUvarint(append(dst, tagOffset), zigzag(bins[0].index))
	}
	return dst
}

// sparseSize is the length of the store as one map entry for each bin in use.
func sparseSize(bins []bin) (size int) {
	for _, b := range bins {
		size += 2 + sparseEntry(b)
	}
	return size
}

// sparseEntry is the length of one entry: always below 128, so its own length
// takes one byte.
func sparseEntry(b bin) int { return 1 + uvarintSize(zigzag(b.index)) + 1 + 8 }

func appendSparse(dst []byte, bins []bin) []byte {
	for _, b := range bins {
		dst = append(dst, tagSparse, byte(sparseEntry(b)), tagIndex)
		dst = binary.AppendUvarint(dst, zigzag(b.index))
		dst = appendDouble(append(dst, tagCount), b.count)
	}
	return dst
}

func appendDouble(dst []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

// zigzag is protobuf's sint32: small magnitudes of either sign stay short.
func zigzag(n int32) uint64 { return uint64(uint32(n<<1) ^ uint32(n>>31)) }

func uvarintSize(n uint64) (size int) {
	for size = 1; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}
