package traces

import (
	"unicode/utf8"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// text is a string of the body as valid UTF-8, repaired as the agent does it.
func (c *Counter) text(t msgpack.Text) []byte {
	raw := t.Of(c.payload.body)
	c.payload.charge(t)
	if utf8.Valid(raw) {
		return raw
	}
	start := len(c.scratch)
	for _, r := range view(raw) {
		c.scratch = utf8.AppendRune(c.scratch, r)
	}
	if len(c.scratch) > c.payload.limits.made {
		c.payload.Fail()
	}
	return c.scratch[start:]
}

// view is bytes of the body as a string, without copying them. It is good for as
// long as the body is not used again.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
