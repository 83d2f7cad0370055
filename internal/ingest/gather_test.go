package ingest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestGathered writes many messages at once, so that batches are admitted together, with
// what may stand between them, and expects what they would have come to one by one.
func TestGathered(t *testing.T) {
	ten := spans(10, key("r"))
	broken := bytes.Clone(ten)
	broken[len(broken)-1] = 99 // flags that nobody knows
	lost := wire.AppendLost(nil, wire.Lost{"buffer_full": 1})
	for _, test := range []struct {
		name     string
		change   func(*Config, *aggregate.Config)
		messages [][]byte
		counted  uint64
		dropped  map[string]uint64
		farewell string
	}{
		{name: "many", messages: repeat(ten, 300), counted: 3000},
		{name: "others between them", messages: append(append(repeat(ten, 20), lost), repeat(ten, 20)...), counted: 400},
		{name: "an empty one between them", messages: append(append(repeat(ten, 20), spans(0, nil)), repeat(ten, 20)...), counted: 400},
		{
			name: "a malformed one among them", messages: append(append(repeat(ten, 5), broken), repeat(ten, 5)...),
			counted: 50, dropped: map[string]uint64{"malformed": 10}, farewell: "bad_message",
		},
		{
			name: "one that is too large among them", messages: append(append(repeat(ten, 5), spans(300, key("r"))), repeat(ten, 5)...),
			change:  func(c *Config, _ *aggregate.Config) { c.MaxBatch = 256 },
			counted: 100, dropped: map[string]uint64{"batch_too_large": 300},
		},
		{
			name: "no room for all", messages: repeat(spans(200, key("r")), 20),
			change:  func(c *Config, a *aggregate.Config) { c.Block, a.RingSlots = true, 256 },
			counted: 4000,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := start(t, test.change)
			c := h.connect("web")
			c.send(bytes.Join(test.messages, nil))
			if test.farewell != "" {
				if reason := c.farewell(); reason != test.farewell {
					t.Errorf("closed with %q", reason)
				}
			} else {
				c.settle()
			}
			h.stop()
			stats := h.Stats()
			for reason, n := range stats.Dropped {
				if n != test.dropped[reason] {
					t.Errorf("dropped %d as %s, want %d", n, reason, test.dropped[reason])
				}
			}
			if h.rows["r"] != test.counted {
				t.Errorf("counted %d, want %d", h.rows["r"], test.counted)
			}
			frames := uint64(2 + len(test.messages)) // with hello and bye
			if test.farewell != "" {
				frames = 1 + 6 // none behind the malformed one is handled
			}
			if stats.Frames != frames {
				t.Errorf("%d frames, want %d", stats.Frames, frames)
			}
		})
	}
}

func repeat(frame []byte, times int) (frames [][]byte) {
	for range times {
		frames = append(frames, frame)
	}
	return frames
}

// TestGather takes what lies in the buffer and no more, and what it has given stays as it
// was.
func TestGather(t *testing.T) {
	h := newHarness(t, func(c *Config, _ *aggregate.Config) { c.MaxBatch = 300 })
	var sent []byte
	for i := range 40 {
		sent = append(sent, spans(20, key(fmt.Sprint("r", i)))...)
	}
	c := &conn{admission: admission{server: h.Server}}
	c.frames = newFrames(&once{data: sent}, 1<<20, time.Second, nil, ample())
	gather := func() (batches int) {
		message, err := c.frames.next()
		if err != nil {
			t.Fatal(err)
		}
		_, body, err := wire.Split(message)
		if err != nil {
			t.Fatal(err)
		}
		walker, err := wire.WalkSpans(body)
		if err != nil {
			t.Fatal(err)
		}
		c.gather(walker)
		return c.together
	}
	seen := 0
	for _, want := range []int{15, 15, 10} { // of 300 spans at most
		if got := gather(); got != want {
			t.Fatalf("%d batches are gathered, want %d", got, want)
		}
		for i := range c.gathered[:c.together] {
			var s wire.Snapshot
			if w := c.gathered[i]; !w.Next(&s) || !bytes.Equal(s.Key, key(fmt.Sprint("r", seen))) {
				t.Errorf("batch %d has another key: %q", seen, s.Key)
			}
			seen++
		}
	}
}

// TestPanicAmongGathered: all that was gathered is dropped under the reason bug.
func TestPanicAmongGathered(t *testing.T) {
	h := start(t, nil)
	c := h.connect("broken")
	for _, conn := range h.connections() {
		conn.batch.runs = nil // an index out of range at its next batch
	}
	h.counters.frames.Add(0) // which it adds to before
	c.send(bytes.Join(repeat(spans(3, key("r")), 5), nil))
	if reason := c.farewell(); reason != "bug" {
		t.Errorf("closed with %q", reason)
	}
	h.stop()
	if stats := h.Stats(); stats.Dropped["bug"] != stats.Received || stats.Received%3 != 0 || stats.Received == 0 {
		t.Errorf("received %d, dropped %v", stats.Received, stats.Dropped)
	}
}
