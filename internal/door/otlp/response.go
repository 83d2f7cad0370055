package otlp

import (
	"bytes"
	"encoding/json"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
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
	eachField(message, func(n protowire.Number, _ uint64, value []byte) {
		if n != fieldPartialSuccess {
			return
		}
		has = true
		eachField(value, func(n protowire.Number, number uint64, text []byte) {
			switch n {
			case fieldRejected:
				partial[rejectedNames[s]] = strconv.FormatInt(int64(number), 10) // a string, as protobuf has 64 bits in JSON
			case fieldErrorMessage:
				partial["errorMessage"] = string(text)
			}
		})
	})
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
	eachField(body, func(n protowire.Number, _ uint64, value []byte) {
		if n != fieldPartialSuccess {
			return
		}
		eachField(value, func(n protowire.Number, number uint64, _ []byte) {
			takes = takes && (n != fieldRejected || number == 0)
		})
	})
	return takes
}

// eachField calls with each field of a message that is a number of any length or has
// bytes, up to what can't be read.
func eachField(message []byte, with func(n protowire.Number, number uint64, value []byte)) {
	for len(message) > 0 {
		n, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return
		}
		message = message[length:]
		switch length = protowire.ConsumeFieldValue(n, kind, message); {
		case length < 0:
			return
		case kind == protowire.VarintType:
			number, _ := protowire.ConsumeVarint(message)
			with(n, number, nil)
		case kind == protowire.BytesType:
			value, _ := protowire.ConsumeBytes(message)
			with(n, 0, value)
		}
		message = message[length:]
	}
}
