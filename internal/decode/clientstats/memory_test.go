package clientstats_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// inUse is the memory of the heap and of the stacks.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// TestPayloadsKeepTheirPromise: whatever a body is made of, reading it makes a Payload
// hold no more than its part of the budget.
func TestPayloadsKeepTheirPromise(t *testing.T) {
	for _, length := range []int{64 << 10, 1 << 20, 25 << 20} {
		body := groupsOfNothing(length)
		p := &clientstats.Payload{}
		before := inUse()
		err := p.Read(body, span.Origin{})
		held := inUse() - before
		if promised := clientstats.Bytes(length); held > promised {
			t.Errorf("%d bytes of statistics made us hold %d, %d are promised: %v", length, held, promised,
				err)
		}
		runtime.KeepAlive(p)
	}
}

// TestThePayloadOfTheNextBodyHoldsNothingOfTheLast: neither where it was merged, nor where
// it was none.
func TestThePayloadOfTheNextBodyHoldsNothingOfTheLast(t *testing.T) {
	for _, cut := range []int{0, 1} {
		p := &clientstats.Payload{}
		last := func() weak.Pointer[byte] {
			body := statsOf(t, nil)
			body = slices.Clone(body[:len(body)-cut])
			if err := p.Read(body, span.Origin{}); (err == nil) != (cut == 0) {
				t.Fatal(err)
			}
			return weak.Make(&body[0])
		}()
		next := p.Next()
		runtime.GC()
		if last.Value() != nil {
			t.Errorf("cut by %d: the last body is still held", cut)
		}
		runtime.KeepAlive(p)
		runtime.KeepAlive(next)
	}
}

// array32 begins an array, or a map with another lead.
func array32(lead byte, n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{lead}, uint32(n))
}

// groupsOfNothing are statistics of many groups with many tags, and little else.
func groupsOfNothing(length int) []byte {
	group := append(append([]byte{0x82, 0xa4}, "Hits"...), 1, 0xa8)
	group = append(group, "PeerTags"...)
	group = append(group, 0x99, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0)
	n := length / len(group)
	body := append(append([]byte{0x81, 0xa5}, "Stats"...), 0x91, 0x81, 0xa5)
	body = append(body, "Stats"...)
	return slices.Concat(body, array32(0xdd, n), bytes.Repeat(group, n))
}

// TestABodyHasAsManyGroupsAndBinsAsItMay: as many as its length allows are read, and one
// more is left to the agent.
func TestABodyHasAsManyGroupsAndBinsAsItMay(t *testing.T) {
	bodyOf := func(groups ...any) []byte {
		return statsOf(t, func(_, bucket, _ object) { bucket["Stats"] = groups })
	}
	groupOf := func(ok, errors []byte) any {
		return object{"Hits": 1, "OkSummary": ok, "ErrorSummary": errors}
	}
	check := func(what string, most []any, oneMore any) {
		var p clientstats.Payload
		if err := p.Read(bodyOf(most...), span.Origin{}); err != nil {
			t.Errorf("as many %s as there may be: %v", what, err)
		}
		if err := p.Read(bodyOf(append(most, oneMore)...), span.Origin{}); !errors.Is(err,
			clientstats.ErrUnfit) {
			t.Errorf("one %s more: %v", what, err)
		}
	}
	small := groupOf(sketchBytes(t), sketchBytes(t))
	most := []any{small}
	for clientstats.GroupsOf(len(bodyOf(append(most, small)...))) > len(most) {
		most = append(most, small)
	}
	check("groups", most, small)

	full := ddsketch.NewDDSketch(ownMapping(t), store.NewDenseStore(), store.NewDenseStore()).ToProto()
	first, last, err := sketch.OwnMapping.Range()
	if err != nil {
		t.Fatal(err)
	}
	full.PositiveValues.ContiguousBinIndexOffset = int32(first)
	full.PositiveValues.ContiguousBinCounts = slices.Repeat([]float64{1}, int(last-first)+1)
	large := marshal(t, full)
	most = nil
	bins := len(full.PositiveValues.ContiguousBinCounts)
	for range clientstats.MaxBins / bins {
		most = append(most, groupOf(large, sketchBytes(t)))
	}
	full.PositiveValues.ContiguousBinCounts = full.PositiveValues.ContiguousBinCounts[:clientstats.MaxBins%bins]
	most = append(most, groupOf(marshal(t, full), sketchBytes(t)))
	check("bins", most, groupOf(sketchBytes(t, 1000), sketchBytes(t)))
}

// ownMapping is the agent's.
func ownMapping(t *testing.T) mapping.IndexMapping {
	t.Helper()
	own, err := sketch.OwnMapping.Library()
	if err != nil {
		t.Fatal(err)
	}
	return own
}
