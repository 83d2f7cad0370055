package payload

import (
	"fmt"
	"math"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"google.golang.org/protobuf/proto"
)

// The agent's own sketches: what it merges all others into.
const (
	relativeAccuracy = 0.01
	maxBins          = 2048
)

// NewSketch is an empty sketch of the agent's own kind.
func NewSketch() *ddsketch.DDSketch {
	s, err := ddsketch.LogCollapsingLowestDenseDDSketch(relativeAccuracy, maxBins)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	return s
}

// decodeSummary reads a sketch with the library. An absent one is empty.
func decodeSummary(raw []byte) (*ddsketch.DDSketch, error) {
	if len(raw) == 0 {
		return NewSketch(), nil
	}
	var message sketchpb.DDSketch
	if err := proto.Unmarshal(raw, &message); err != nil {
		return nil, fmt.Errorf("decode sketch: %w", err)
	}
	if err := checkBins(&message); err != nil {
		return nil, fmt.Errorf("decode sketch: %w", err)
	}
	s, err := ddsketch.FromProto(&message)
	if err != nil {
		return nil, fmt.Errorf("decode sketch: %w", err)
	}
	if !s.IndexMapping.Equals(NewSketch().IndexMapping) {
		return nil, fmt.Errorf("decode sketch: mapping %v is not the agent's, logarithmic to 1 %%",
			message.Mapping)
	}
	return s, nil
}

// maxBinIndex is beyond what any duration has, some 2200. A dense store of the
// library takes memory for every bin between the lowest and the highest.
const maxBinIndex = 1 << 15

// checkBins refuses indexes that no duration has and counts that count nothing.
func checkBins(message *sketchpb.DDSketch) error {
	for _, store := range []*sketchpb.Store{message.PositiveValues, message.NegativeValues} {
		first := int(store.GetContiguousBinIndexOffset())
		for i, count := range store.GetContiguousBinCounts() {
			if err := checkBin(first+i, count); err != nil {
				return err
			}
		}
		for index, count := range store.GetBinCounts() {
			if err := checkBin(int(index), count); err != nil {
				return err
			}
		}
	}
	return checkBin(0, message.ZeroCount)
}

func checkBin(index int, count float64) error {
	if index < -maxBinIndex || index > maxBinIndex {
		return fmt.Errorf("bin %d is outside any duration", index)
	}
	if !(count >= 0) || math.IsInf(count, 0) {
		return fmt.Errorf("bin %d counts %v", index, count)
	}
	return nil
}
