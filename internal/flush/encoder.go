package flush

import "github.com/spanstatsd/spanstatsd/internal/aggregate"

// Encoder makes payloads without sending them: the merging and encoding half of a
// Flusher, for the programs that measure and check it beside the agent's code.
type Encoder struct {
	merger  merger
	encoder *encoder
}

// NewEncoder returns an encoder. Its memory is reused from call to call.
func NewEncoder() *Encoder { return &Encoder{encoder: newEncoder()} }

// Encode returns the bodies of a sealed cycle's payloads and how many spans fit
// into none.
func (e *Encoder) Encode(sealed *aggregate.Sealed) (bodies [][]byte, unencodable uint64) {
	unencodable = e.encode(sealed, DefaultMaxPayloadBytes, func(p *payload) { bodies = append(bodies, p.body) })
	return bodies, unencodable
}

func (e *Encoder) encode(sealed *aggregate.Sealed, limit int, emit func(*payload)) (unencodable uint64) {
	defer e.merger.forget()
	return e.encoder.encode(sealed, e.merger.merge(sealed), limit, emit)
}
