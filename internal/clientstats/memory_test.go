package clientstats

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"weak"

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
		p := &Payload{}
		before := inUse()
		err := p.Read(body, span.Origin{})
		held := inUse() - before
		if promised := Bytes(length); held > promised {
			t.Errorf("%d bytes of statistics made us hold %d, %d are promised: %v", length, held, promised, err)
		}
		runtime.KeepAlive(p)
	}
}

// TestThePayloadOfTheNextBodyHoldsNothingOfTheLast: neither where it was merged, nor where
// it was none.
func TestThePayloadOfTheNextBodyHoldsNothingOfTheLast(t *testing.T) {
	for _, cut := range []int{0, 1} {
		p := &Payload{}
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
