package otlp

import (
	"bytes"
	"net"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// More frames and flags of HTTP/2.
const (
	framePriority     = 2
	framePing         = 6
	frameWindow       = 8
	frameContinuation = 9

	flagNone = 0
)

// flood is what a hostile client writes again and again behind what it begins with.
type flood struct {
	begins, again []byte
	reads         bool // what it is answered
	isCut         bool // net/http ends it in any case
}

// floods are by what docs/faults.md calls them.
var floods = map[string]flood{
	"CONTINUATION without an end": {
		begins: appendFrame(nil, frameHeaders, flagNone, 1, appendField(nil, ":method", "POST")),
		again: appendFrame(nil, frameContinuation, flagNone, 1,
			appendField(nil, "x", string(bytes.Repeat([]byte("x"), 10_000)))),
		reads: true,
		isCut: true,
	},
	"empty CONTINUATION": {
		begins: appendFrame(nil, frameHeaders, flagNone, 1, appendField(nil, ":method", "POST")),
		again:  appendFrame(nil, frameContinuation, flagNone, 1, nil), reads: true,
	},
	"SETTINGS, and no answer is read": {again: appendFrame(nil, frameSettings, flagNone, 0, nil)},
	"PING, and no answer is read": {
		again: appendFrame(nil, framePing, flagNone, 0, make([]byte, 8)),
		isCut: true,
	},
	"empty DATA": {
		begins: opened(1, 0),
		again:  appendFrame(nil, frameData, flagNone, 1, nil), reads: true,
	},
	"PRIORITY": {again: appendFrame(nil, framePriority, flagNone, 1,
		[]byte{0, 0, 0, 0, 1}), reads: true},
	"a window a byte at a time": {
		begins: opened(1, 0),
		again:  appendFrame(nil, frameWindow, flagNone, 1, []byte{0, 0, 0, 1}), reads: true,
	},
	"fields that expand": { // one of 4000 bytes, which each byte behind names once more
		begins: appendFrame(nil, frameHeaders, flagEndHeaders, 1,
			append(append([]byte{0x40, 1, 'x'}, appendText(nil, 4000)...),
				bytes.Repeat([]byte{0x80 | 62}, 10_000)...)),
		again: appendFrame(nil, framePriority, flagNone, 1, []byte{0, 0, 0, 0, 1}), reads: true,
	},
}

// appendText is a text of so many bytes as HPACK has it.
func appendText(b []byte, n int) []byte {
	return append(append(b, hpackLength(n)...), make([]byte, n)...)
}

// TestFloodsOfFramesCostOnlyTheirSender: it is cut off, or goes on at
// the cost of what it writes. What it holds is bounded, others are answered meanwhile, and behind
// it nothing is left.
func TestFloodsOfFramesCostOnlyTheirSender(t *testing.T) {
	const connections, most = 2, 512 << 10 // bytes of each
	for name, f := range floods {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil)
			before := otlptest.MemoryInUse()
			written := make(chan error, connections)
			var all []net.Conn
			for range connections {
				c := h.dial()
				all = append(all, c)
				go func() { written <- f.write(c, most) }()
			}
			client := h.client(true)
			for i := range 20 {
				if a := postGRPC(t, client, framed(exported("shop", i*10, 1, 1), false)); a.grpc != "0" {
					t.Errorf("another is answered %+v", a)
				}
			}
			for range connections {
				if err := <-written; err == nil && f.isCut {
					t.Error("all of it was read")
				}
			}
			promised := connections*h.config.connectionBytes() + 1<<20
			if held := otlptest.MemoryInUse() - before; float64(held) > float64(promised)*(1+detectorShare) {
				t.Errorf("%d bytes are held, %d are promised", held, promised)
			}
			for _, c := range all {
				c.Close()
			}
			eventually.True(t, "nothing is held", func() bool {
				return h.Stats().Connections == 1 && h.Stats().BufferedBytes == 0
			})
			h.stop()
			if h.rows["name 0"] != 20 {
				t.Errorf("counted %v", h.rows)
			}
		})
	}
}

// write writes the flood, up to so many bytes.
func (f *flood) write(c net.Conn, most int) error {
	if f.reads {
		speakFrames(c)
	} else if _, err := c.Write(appendFrame([]byte(preface), frameSettings,
		flagNone, 0, nil)); err != nil {
		return err
	}
	if _, err := c.Write(f.begins); err != nil {
		return err
	}
	chunk := bytes.Repeat(f.again, 1+(32<<10)/len(f.again))
	for wrote := 0; wrote < most; wrote += len(chunk) {
		if _, err := c.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}
