package otlp

import (
	"bytes"
	"net"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// Further HTTP/2 frame types and flags.
const (
	framePriority     = 2
	framePing         = 6
	frameWindow       = 8
	frameContinuation = 9

	flagNone = 0
)

// flood is a sequence of bytes that a malicious client repeats after a prologue.
type flood struct {
	begins, again []byte
	reads         bool // whether the client reads the responses
	isCut         bool // whether net/http always closes the connection
}

// floods has the floods by their names in docs/faults.md.
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
	"fields that expand": { // one field of 4000 bytes, which each following byte references again
		begins: appendFrame(nil, frameHeaders, flagEndHeaders, 1,
			append(append([]byte{0x40, 1, 'x'}, appendText(nil, 4000)...),
				bytes.Repeat([]byte{0x80 | 62}, 10_000)...)),
		again: appendFrame(nil, framePriority, flagNone, 1, []byte{0, 0, 0, 0, 1}), reads: true,
	},
}

// appendText appends an HPACK string literal of n bytes.
func appendText(b []byte, n int) []byte {
	return append(append(b, hpackLength(n)...), make([]byte, n)...)
}

// TestFrames_FloodCostsOnlyItsSender checks that the connection of each flood is closed, or continues with
// limited memory. Other clients are served during the flood, and all memory is released after it.
func TestFrames_FloodCostsOnlyItsSender(t *testing.T) {
	const connections, most = 2, 512 << 10 // most is in bytes per connection
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

// write writes the flood until most bytes are written.
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
