package ingest

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestHostile sends various invalid and hostile input over a real socket, while a well-behaved
// client sends spans. All spans of that client must be counted, and the accounting must balance (checked
// by stop).
func TestHostile(t *testing.T) {
	for _, attack := range []struct {
		name string
		do   func(h *harness)
	}{
		{"half frames", func(h *harness) {
			for i := range 50 {
				c := h.connect("half")
				c.send(spans(20, key("r"))[:4+i])
				c.Close()
			}
		}},
		{"lengths that lie", func(h *harness) {
			for _, length := range []byte{0x00, 0x01, 0x10, 0x7f, 0xff} {
				c := h.connect("liar")
				c.send([]byte{length, 0xff, 0xff, 0xff})
				c.CloseWrite()
				c.byeReason()
			}
			c := h.connect("short")
			frame := spans(5, key("r"))
			frame[3] -= 10 // length shorter than the content
			c.send(frame)
			c.byeReason()
		}},
		{"keys of no bytes", func(h *harness) {
			for n := range 20 {
				c := h.connect("empty")
				c.send(spans(1+n, nil))
				if reason := c.byeReason(); reason != FaultBadMessage.String() {
					h.t.Errorf("keys of no bytes are closed with %q", reason)
				}
			}
		}},
		{"nesting bombs", func(h *harness) {
			for _, kind := range []byte{1, 4, 5, 6, 7, 8} {
				bomb := []byte{0x92, kind}
				for range 60_000 {
					bomb = append(bomb, 0x91)
				}
				c := h.connect("bomber")
				c.send(raw(append(bomb, 0xc0)...))
				c.byeReason()
			}
			deep := []byte{0x93}
			for range 30_000 {
				deep = append(deep, 0x91)
			}
			c := h.connect("bomber")
			c.send(spans(1, deep))
			c.byeReason()
		}},
		{"arrays of four billion", func(h *harness) {
			for _, kind := range []byte{4, 5} {
				c := h.connect("claimer")
				c.send(raw(0x92, kind, 0xdd, 0xff, 0xff, 0xff, 0xff, 0x94))
				c.byeReason()
			}
			for _, claim := range [][]byte{
				{0xdd, 0xff, 0xff, 0xff, 0xff},       // a key of four billion labels
				{0x93, 0xdb, 0xff, 0xff, 0xff, 0xff}, // a label of four billion bytes
				// four billion peer tags
				{0x98, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xdd, 0xff, 0xff, 0xff, 0xff, 0xa0},
			} {
				c := h.connect("claimer")
				c.send(spans(1, claim))
				c.byeReason()
			}
			for _, kind := range []byte{1, 6, 7, 8} {
				c := h.connect("claimer")
				c.send(raw(0x92, kind, 0xdf, 0xff, 0xff, 0xff, 0xff, 0xa0))
				c.byeReason()
			}
		}},
		{"a byte at a time", func(h *harness) {
			c := h.connect("trickler")
			defer c.Close()
			for _, b := range spans(10, key("r")) {
				if _, err := c.Write([]byte{b}); err != nil {
					return // disconnected after ReadTimeout
				}
				time.Sleep(time.Millisecond)
			}
		}},
		{"a thousand connections", func(h *harness) {
			var dialing sync.WaitGroup
			for i := range 1000 {
				dialing.Go(func() {
					conn, err := net.Dial("unix", h.config.Socket.Path)
					if err != nil {
						return // the accept queue is full, which affects only this client
					}
					defer conn.Close()
					switch i % 4 {
					case 0:
						_, _ = conn.Write(hello("one of many"))
					case 1:
						_, _ = conn.Write([]byte("nonsense"))
					case 2:
						_, _ = conn.Write(hello("one of many"))
						_, _ = conn.Write(spans(3, key("r")))
					}
					_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
					_, _ = io.Copy(io.Discard, conn)
				})
			}
			dialing.Wait()
		}},
		{"sudden resets", func(h *harness) {
			for i := range 100 {
				c := h.connect("resetter")
				c.send(spans(1+i%50, key("r")))
				if i%2 == 0 {
					c.send(wire.AppendFlush(nil, &wire.Flush{ID: uint64(i)})) // without reading the reply
				}
				c.Close()
			}
		}},
		{"a flood that does not read", func(h *harness) {
			c := h.connect("flooder")
			defer c.Close()
			frame := spans(256, key("flood"))
			for range 2000 {
				if _, err := c.Write(frame); err != nil {
					return
				}
			}
		}},
		{"unique keys and numbers", func(h *harness) {
			c := h.connect("scanner")
			defer c.Close()
			for i := range 20_000 {
				c.send(spans(1, key(fmt.Sprint("scan", i))))
				if i%10 == 0 {
					c.send(define(uint32(i%8192), key(fmt.Sprint("define", i))))
				}
			}
			c.settle()
		}},
		{"flushes in a loop", func(h *harness) {
			c := h.connect("flusher")
			defer c.Close()
			for i := range 5000 {
				if _, err := c.Write(wire.AppendFlush(nil, &wire.Flush{ID: uint64(i)})); err != nil {
					return
				}
			}
		}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			h := start(t, func(c *configs, _ *aggregate.Config) {
				c.ReadTimeout, c.MaxConnections = 200*time.Millisecond, 200
			})
			healthy := h.connect("healthy")
			stop := make(chan struct{})
			var sending sync.WaitGroup
			sent := uint64(0)
			sending.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						healthy.send(spans(16, key("the healthy one's")))
						sent += 16
						time.Sleep(time.Millisecond)
					}
				}
			})
			attack.do(h)
			close(stop)
			sending.Wait()
			healthy.settle()
			eventually.True(t, "all connections are closed",
				func() bool { return h.Stats().Connections == 0 })
			h.stop()
			if got := h.rows["the healthy one's"]; got != sent {
				t.Errorf("the healthy tracer was counted %d of %d; dropped %v", got, sent, h.Stats().Dropped)
			}
			if stats := h.Stats(); stats.Faults["bug"] != 0 || stats.Dropped["bug"] != 0 {
				t.Errorf("a panic: faults %v", stats.Faults)
			}
		})
	}
}
