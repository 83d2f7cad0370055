package agent

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/flush"
)

// Encoder makes payloads without sending them: the merging and encoding half of a
// flush, for the programs that measure and check it beside the agent's code.
type Encoder struct {
	merger  flush.Merger
	encoder *encoder
}

// NewEncoder returns an encoder. Its memory is reused from call to call.
func NewEncoder() *Encoder { return &Encoder{encoder: newEncoder()} }

// Encode returns the bodies of a sealed cycle's payloads and how many spans fit
// into none.
func (e *Encoder) Encode(sealed *aggregate.Sealed) (bodies [][]byte, unencodable uint64) {
	unencodable = e.encode(sealed, flush.DefaultMaxPayloadBytes, func(p *flush.Payload) { bodies = append(bodies, p.Body) })
	return bodies, unencodable
}

func (e *Encoder) encode(sealed *aggregate.Sealed, limit int, emit func(*flush.Payload)) (unencodable uint64) {
	defer e.merger.Forget()
	return e.encoder.Encode(sealed, e.merger.Merge(sealed), limit, emit).Lost[flush.Unencodable]
}
