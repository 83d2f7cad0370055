package otlp

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"

	flushpost "github.com/spanstatsd/spanstatsd/internal/flush/post"
)

// The fields of an Export...Response, and of its partial success.
const (
	fieldPartialSuccess = 1
	fieldRejected       = 1
	fieldErrorMessage   = 2
)

// responseJSON is an Export...Response in JSON. What can't be read says nothing.
func responseJSON(message []byte, s signal) []byte {
	partial := map[string]string{}
	has := false
	for in := range partialSuccess(message) {
		has = true
		switch in.Number {
		case fieldRejected: // a string, as protobuf has 64 bits in JSON
			partial[rejectedNames[s]] = strconv.FormatInt(int64(in.Value), 10)
		case fieldErrorMessage:
			partial["errorMessage"] = string(in.Bytes)
		}
	}
	if !has {
		return []byte("{}")
	}
	b, err := json.Marshal(map[string]any{"partialSuccess": partial})
	if err != nil {
		panic("BUG: a response has no JSON: " + err.Error())
	}
	return b
}

// takesAll says whether a destination that has taken a request has left nothing of it out. Which
// spans it left out nobody says.
func (a *reply) takesAll(e encoding) bool {
	body, takes := a.message, true
	if a.asIs != nil {
		body = a.asIs
	}
	if e == inJSON && a.asIs != nil {
		return !bytes.Contains(body, []byte(`"`+rejectedNames[signalTraces]+`"`))
	}
	for in := range partialSuccess(body) {
		takes = takes && (in.Number != fieldRejected || in.Value == 0)
	}
	return takes
}

// partialSuccess goes through the fields of a response's partial success.
func partialSuccess(message []byte) iter.Seq[flushpost.Field] {
	return func(yield func(flushpost.Field) bool) {
		for f := range flushpost.Fields(message) {
			if f.Number != fieldPartialSuccess {
				continue
			}
			for in := range flushpost.Fields(f.Bytes) {
				if !yield(in) {
					return
				}
			}
		}
	}
}
