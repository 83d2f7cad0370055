package checkclient

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// sent is a connection whose client sent these bytes and closed its end.
type sent struct {
	net.Conn
	io.Reader
	answers bytes.Buffer
}

func (c *sent) Read(b []byte) (int, error)       { return c.Reader.Read(b) }
func (c *sent) Write(b []byte) (int, error)      { return c.answers.Write(b) }
func (c *sent) SetReadDeadline(time.Time) error  { return nil }
func (c *sent) SetWriteDeadline(time.Time) error { return nil }
func (c *sent) Close() error                     { return nil }

// FuzzSession: no input makes a session panic, print terminal control characters, or pass after
// it has sent bye.
func FuzzSession(f *testing.F) {
	for _, c := range wrongClients {
		f.Add(bytes.Join(c.frames, nil))
	}
	f.Add(bytes.Join(story(), nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			config := configOf(&out)
			config.JSON = asJSON
			c := New(config)
			conn := &sent{Reader: bytes.NewReader(data)}
			c.serve(context.Background(), conn, 1)
			for _, r := range out.String() {
				if r != '\n' && !unicode.IsPrint(r) {
					t.Fatalf("%q is printed as it is: %q", r, out.String())
				}
			}
			bye := []byte{0x92, byte(wire.TypeBye)}
			if c.unwell.Load() == 0 && bytes.Contains(conn.answers.Bytes(), bye) ||
				strings.Count(out.String(), "\n") == 0 {
				t.Errorf("it is well, and was sent a bye:\n%s", out.String())
			}
		}
	})
}
