package flush

import "github.com/spanstatsd/spanstatsd/internal/aggregate"

// Encoder makes payloads without sending them: the merging and encoding half of a
// Flusher, for the programs that measure and check it beside the agent's code.
type Encoder struct{ encoder *encoder }

// NewEncoder returns an encoder. Its memory is reused from call to call.
func NewEncoder() *Encoder { return &Encoder{newEncoder()} }

// Encode returns the bodies of a sealed cycle's payloads and how many spans fit
// into none.
func (e *Encoder) Encode(sealed *aggregate.Sealed) (bodies [][]byte, unencodable uint64) {
	unencodable = e.encoder.encode(sealed, DefaultMaxPayloadBytes, func(p *payload) { bodies = append(bodies, p.body) })
	return bodies, unencodable
}
