package agent

import (
	"encoding/binary"
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
	mappings [][]byte     // encoded, by MappingID
	runs     []sketch.Run // ranges of bins with spans in the sketch that is being encoded
	store    []byte       // its bins, encoded
	encoded  []byte       // the whole sketch, encoded
}

// encodeMappings encodes the mappings that the sketches of a sealed cycle have. Call it before encode.
func (e *sketchEncoder) encodeMappings(sealed *aggregate.Sealed) {
	e.mappings = e.mappings[:0]
	for _, m := range sealed.Mappings() {
		e.mappings = append(e.mappings, appendMapping(nil, m))
	}
}

// encode returns the sketch in the protobuf format of Datadog's sketches. It writes the bins in the middle as one
// array of counts (dense), and the others as pairs of an index and a count (sparse). It writes an empty store of
// negative values, because the agent's own code writes one, too. The result is valid until the next call.
func (e *sketchEncoder) encode(s *sketch.Sketch, mapping sketch.MappingID) []byte {
	e.runs = s.Runs(e.runs, mapping)
	first, end := denseRange(e.runs)
	e.store = appendSparse(e.store[:0], s, e.runs[:first])
	e.store = appendSparse(e.store, s, e.runs[end:])
	e.store = appendDense(e.store, s, e.runs[first:end])

	b := append(e.encoded[:0], e.mappings[mapping]...)
	b = protolite.AppendBytes(b, fieldPositive, e.store)
	b = protolite.AppendBytes(b, fieldNegative, "")
	if zeros := s.Zeros(); zeros != 0 {
		b = protolite.AppendDouble(b, fieldZeroCount, zeros)
	}
	e.encoded = b
	return b
}

// denseBinBytes is the length of one bin in a contiguous range: a fixed64.
const denseBinBytes = 8

// denseRange returns the range runs[first:end] to encode as one array of counts, so that the total length is
// minimal. A run is a sequence of adjacent non-empty bins. A bin in the array takes denseBinBytes, and so do the
// empty bins between its runs. A bin outside has an entry of its own, which is longer. Kadane's algorithm finds the
// best range.
func denseRange(runs []sketch.Run) (first, end int) {
	bestSavings := 0
	start, savings := 0, 0 // the best range that ends with the current run, and the bytes that it saves
	for i, run := range runs {
		gapBytes := 0
		if i > 0 {
			emptyBins := int(run.First - runs[i-1].End)
			gapBytes = denseBinBytes * emptyBins
		}
		isWorthCrossingGap := savings > gapBytes
		if isWorthCrossingGap {
			savings -= gapBytes
		} else {
			start, savings = i, 0 // a range that begins with this run is better
		}
		savings += entryBytes(run) - denseBinBytes*run.Len()
		if savings >= bestSavings { // of equally good ranges, the last one
			bestSavings = savings
			first = start
			end = i + 1
		}
	}
	return first, end
}

// The length of the entry of a single bin: tag and length of the entry, tag and index, tag and count. An index from
// firstTwoByteIndex on takes two bytes, because zigzag encoding doubles it.
const (
	entryHeadBytes    = 2
	shortEntryBytes   = entryHeadBytes + 1 + 1 + 1 + 8
	longEntryBytes    = entryHeadBytes + 1 + 2 + 1 + 8
	firstTwoByteIndex = 64
)

// entryBytes returns the length of all bins of a run if each is written as an entry of its own.
func entryBytes(run sketch.Run) int {
	longEntries := 0
	if run.End > firstTwoByteIndex {
		longEntries = int(run.End - max(run.First, firstTwoByteIndex))
	}
	shortEntries := run.Len() - longEntries
	return shortEntries*shortEntryBytes + longEntries*longEntryBytes
}

// appendSparse appends one protobuf entry, an index and a count, for each bin in runs, which are sequences of
// adjacent bins of the sketch.
func appendSparse(b []byte, s *sketch.Sketch, runs []sketch.Run) []byte {
	for _, run := range runs {
		for i, count := range s.Counts(run) {
			b = appendEntry(b, int(run.First)+i, float64(count))
		}
	}
	return b
}

// appendEntry appends the protobuf entry of one bin. It writes the tags as constant bytes instead of calling
// protowire, because a sketch can have hundreds of bins.
func appendEntry(b []byte, index int, count float64) []byte {
	const (
		entryTag = fieldSparse<<3 | byte(protowire.BytesType)
		indexTag = fieldIndex<<3 | byte(protowire.VarintType)
		countTag = fieldCount<<3 | byte(protowire.Fixed64Type)
	)
	const tagBytes, countBytes = 1, 8
	encodedIndex := protowire.EncodeZigZag(int64(index))
	contentBytes := tagBytes + protowire.SizeVarint(encodedIndex) + tagBytes + countBytes
	b = append(b, entryTag, byte(contentBytes), indexTag)
	b = binary.AppendUvarint(b, encodedIndex)
	b = append(b, countTag)
	return protowire.AppendFixed64(b, math.Float64bits(count))
}

// appendDense appends the bins of all runs as one contiguous range. The empty bins between the runs are zeros.
func appendDense(b []byte, s *sketch.Sketch, runs []sketch.Run) []byte {
	if len(runs) == 0 {
		return b
	}
	first, end := runs[0].First, runs[len(runs)-1].End
	b = protolite.AppendHead(b, fieldDense, denseBinBytes*int(end-first))
	nextBin := first
	for _, run := range runs {
		for ; nextBin < run.First; nextBin++ {
			b = protowire.AppendFixed64(b, 0)
		}
		for _, count := range s.Counts(run) {
			b = protowire.AppendFixed64(b, math.Float64bits(float64(count)))
		}
		nextBin = run.End
	}
	if first != 0 {
		b = protolite.AppendVarint(b, fieldDenseOffset, protowire.EncodeZigZag(int64(first)))
	}
	return b
}

// appendMapping appends a mapping of durations to bins. Like protobuf, it omits fields that are zero.
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
