package otlp

import (
	"bytes"
	"compress/gzip"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
)

// packer packs with gzip. Its memory, about a MiB, serves one message after the other.
type packer struct{ gzip *gzip.Writer }

// packedBytes is the most that packing makes of so many bytes: five for each block that is
// stored as it is, and what stands around them.
func packedBytes(n int) int { return n + n/1000 + 1<<10 }

// pack appends a message to a body with room for it.
func (p *packer) pack(to *bodies.Body, message []byte) {
	into := bytes.NewBuffer(to.Bytes)
	if p.gzip == nil {
		p.gzip, _ = gzip.NewWriterLevel(into, gzip.BestSpeed) // the level is one
	} else {
		p.gzip.Reset(into)
	}
	_, _ = p.gzip.Write(message) // to memory, which takes everything
	_ = p.gzip.Close()
	to.Bytes = into.Bytes()
}
