package otlpanswer

import (
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// Partial is what an Export...Response says of a request that was taken: how many of its parts were
// not, and why.
type Partial struct {
	Rejected uint64
	Message     string
}

// The fields of an Export...Response, and of its partial success.
const (
	fieldPartial  protolite.Number = 1
	fieldRejected protolite.Number = 1
	fieldSaid     protolite.Number = 2
)

// ReadPartial reads a response in protobuf.
func ReadPartial(response []byte) (p Partial) {
	for f := range protolite.Fields(response) {
		if f.Number != fieldPartial {
			continue
		}
		for in := range protolite.Fields(f.Bytes) {
			switch in.Number {
			case fieldRejected:
				p.Rejected = uint64(max(0, int64(in.Value)))
			case fieldSaid:
				p.Message = string(in.Bytes)
			}
		}
	}
	return p
}

// JSON is the response in JSON, where what was rejected has a name of its own for each signal, and a
// number of 64 bits is a text.
func (p Partial) JSON(rejected string) []byte {
	if p == (Partial{}) {
		return []byte("{}")
	}
	partial := map[string]string{}
	if p.Rejected > 0 {
		partial[rejected] = strconv.FormatUint(p.Rejected, 10)
	}
	if p.Message != "" {
		partial["errorMessage"] = p.Message
	}
	return mustJSON(map[string]any{"partialSuccess": partial})
}
