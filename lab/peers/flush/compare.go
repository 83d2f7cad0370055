package main

import (
	"fmt"
	"maps"
	"slices"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"google.golang.org/protobuf/proto"
)

// compare makes the payloads of one flush on each side, decodes both with the agent's generated
// decoder, and returns an error if they differ.
func compare(w *work) error {
	ours, err := groups(w.ours()())
	if err != nil {
		return fmt.Errorf("decode our payloads: %w", err)
	}
	agents, err := groups(w.agents()())
	if err != nil {
		return fmt.Errorf("decode the agent's payload: %w", err)
	}
	if len(ours) != aggregates || !slices.Equal(slices.Sorted(maps.Keys(ours)),
		slices.Sorted(maps.Keys(agents))) {
		return fmt.Errorf("%d groups of ours, %d of the agent's", len(ours), len(agents))
	}
	for resource, want := range agents {
		if err := compareGroup(ours[resource], want); err != nil {
			return fmt.Errorf("group %q: %w", resource, err)
		}
	}
	return nil
}

// groups returns the groups of payloads by resource.
func groups(bodies [][]byte) (map[string]*pb.ClientGroupedStats, error) {
	all := map[string]*pb.ClientGroupedStats{}
	for _, body := range bodies {
		var p pb.ClientStatsPayload
		if _, err := p.UnmarshalMsg(body); err != nil {
			return nil, err
		}
		for _, bucket := range p.Stats {
			for _, g := range bucket.Stats {
				all[g.Resource] = g
			}
		}
	}
	return all, nil
}

func compareGroup(got, want *pb.ClientGroupedStats) error {
	for _, sketches := range [][2][]byte{
		{got.OkSummary, want.OkSummary},
		{got.ErrorSummary, want.ErrorSummary},
	} {
		ours, err := bins(sketches[0])
		if err != nil {
			return fmt.Errorf("decode our sketch: %w", err)
		}
		agents, err := bins(sketches[1])
		if err != nil {
			return fmt.Errorf("decode the agent's sketch: %w", err)
		}
		if !maps.Equal(ours, agents) {
			return fmt.Errorf("bins %v, want %v", ours, agents)
		}
	}
	got.OkSummary, got.ErrorSummary, want.OkSummary, want.ErrorSummary = nil, nil, nil, nil
	if !proto.Equal(got, want) {
		return fmt.Errorf("%v, want %v", got, want)
	}
	return nil
}

// bins returns the bins that the agent finds in an encoded sketch.
func bins(raw []byte) (map[int]float64, error) {
	var message sketchpb.DDSketch
	if err := proto.Unmarshal(raw, &message); err != nil {
		return nil, err
	}
	sketch, err := ddsketch.FromProto(&message)
	if err != nil {
		return nil, err
	}
	counts := map[int]float64{}
	sketch.GetPositiveValueStore().ForEach(func(index int, count float64) bool {
		counts[index] = count
		return false
	})
	return counts, nil
}
