package datadog_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"weak"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// inUse is the memory of the heap and of the stacks.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// keptAtMost is what a counter may hold between two bodies.
const keptAtMost = 16 << 20

// TestCountersKeepTheirPromise: whatever a body is made of, counting it makes a counter
// hold no more than its part of the budget, with the ids of traces or without.
func TestCountersKeepTheirPromise(t *testing.T) {
	checkPromise(t, policyOf(t), false)
	checkPromise(t, keepingPolicy(t), true)
}

func checkPromise(t *testing.T, w *datadog.Policy, traceIDs bool) {
	t.Helper()
	for _, length := range []int{64 << 10, 1 << 20, 25 << 20} {
		for name, body := range greedy(length) {
			format := decode.FormatV05
			if name == "strings of v1" {
				format = decode.FormatV1
			}
			c := datadog.NewCounter()
			before := inUse()
			err := c.Count(format, body, "go", false, w)
			held := inUse() - before
			t.Logf("%d KiB of %s: %d KiB held, %d promised: %v", len(body)>>10, name, held>>10,
				datadog.CounterBytes(len(body), traceIDs)>>10, err)
			if held > datadog.CounterBytes(length, traceIDs) {
				t.Errorf("%d bytes of %s made it hold %d", len(body), name, held)
			}
			if c.Release(); inUse()-before > keptAtMost {
				t.Errorf("%d bytes of %s make it hold %d for the next body", len(body), name, inUse()-before)
			}
			runtime.KeepAlive(c)
			runtime.KeepAlive(body)
		}
	}
}

// TestLimitsGoByTheBodyAlone: a counter that has met a longer body takes no more of a shorter
// one than a new counter does.
func TestLimitsGoByTheBodyAlone(t *testing.T) {
	c, w := datadog.NewCounter(), policyOf(t)
	for _, length := range []int{1 << 20, 64 << 10} {
		if c.Count(decode.FormatV05, greedy(length)["tags"], "go", false, w) == nil {
			t.Errorf("%d bytes of tags were counted", length)
		}
	}
}

// TestTheCounterOfTheNextBodyHoldsNothingOfTheLast: neither where it was counted, nor where
// it was left to the agent.
func TestTheCounterOfTheNextBodyHoldsNothingOfTheLast(t *testing.T) {
	for _, cut := range []int{0, 1} {
		c, w := datadog.NewCounter(), policyOf(t)
		last := func() weak.Pointer[byte] {
			body := bodyV04(t, 100)
			body = slices.Clone(body[:len(body)-cut])
			if err := c.Count(decode.FormatV04, body, "go", false, w); (err == nil) != (cut == 0) {
				t.Fatal(err)
			}
			return weak.Make(&body[0])
		}()
		c.Release()
		runtime.GC()
		if last.Value() != nil {
			t.Errorf("cut by %d: the last body is still held", cut)
		}
		runtime.KeepAlive(c)
	}
}

// array32 begins an array, or a map with another lead.
func array32(lead byte, n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{lead}, uint32(n))
}

// greedy are bodies of that length which are made of what costs most of ours.
func greedy(length int) map[string][]byte {
	dict := append([]byte{0x92, 0x96, 0xa0, 0xa1, 's', 0xa1, 'o', 0xac}, "_dd.measured"...)
	dict = append(append(dict, 0xad), "_dd.base_service"[:13]...)
	dict = append(dict, 0xa1, '1')
	span := []byte{
		0x9c, 1, 2, 2, 1, 1, 0, 0xcf, 0x0d, 0xe0, 0xb6, 0xb3, 0xa7, 0x64, 0, 0, 1, 0, 0x80, 0x80,
		0,
	}
	spans := func(n int) []byte { return bytes.Repeat(span, n) }
	n := length / len(span)
	tags := length / 2
	all := map[string][]byte{
		"spans":  slices.Concat(dict, []byte{0x91}, array32(0xdd, n), spans(n)),
		"traces": slices.Concat(dict, array32(0xdd, n), bytes.Repeat(append([]byte{0x91}, span...), n)),
		"tags": slices.Concat(dict, []byte{0x91, 0x91}, span[:len(span)-3], []byte{0x80},
			array32(0xdf, tags), bytes.Repeat([]byte{3, 1}, tags), []byte{0}),
	}
	long := bytes.Repeat([]byte{'x'}, length/4)
	several := length / 2 / len(span)
	all["labels"] = slices.Concat([]byte{0x92, 0x94, 0xa0, 0xa1, 's'}, array32(0xdb, len(long)), long,
		[]byte{0xa1, 'x'},
		[]byte{0x91}, array32(0xdd, several), spans(several))
	broken := slices.Concat(bytes.Repeat([]byte{0xff}, 4000), []byte{'x'})
	all["broken labels"] = slices.Concat([]byte{0x92, 0x94, 0xa0, 0xa1, 's'}, array32(0xdb, len(broken)),
		broken, []byte{0xa1, 'x'},
		[]byte{0x91}, array32(0xdd, several), spans(several))
	texts := length / 4
	list := array32(0xdd, texts)
	for i := range texts {
		list = append(list, 0xa3, byte(i), byte(i>>8), byte(i>>16))
	}
	all["strings"] = slices.Concat([]byte{0x92}, list, []byte{0x90})
	all["strings of v1"] = slices.Concat([]byte{0x81, 0x01}, list)
	return all
}
