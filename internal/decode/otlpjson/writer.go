package otlpjson

import (
	"errors"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
	"google.golang.org/protobuf/encoding/protowire"
)

// ProtobufBytes is how long the protobuf of so many bytes of JSON may be. It is shorter, since
// names become numbers, but for lists of texts: of an element two quotes and a comma become a
// number and a length, and the length of 16 KiB or more has at least three bytes.
func ProtobufBytes(json int) int { return json + json>>14 }

// reader reads a request, and writes each field as soon as it is read.
type reader struct {
	jsonscan.Scanner
	written []byte
}

var (
	errShape  = errors.New("a value is not what its name says: see the JSON encoding of OTLP")
	errFollow = errors.New("something follows the request")
)

// plain is what a text says: of the body, or where that has escapes, behind what is written,
// until more is written there.
func (r *reader) plain(t jsonscan.Quoted) []byte {
	if t.IsPlain {
		return t.Raw
	}
	end := len(r.written)
	written := t.AppendTo(r.written)
	r.written = written[:end]
	return written[end:]
}

// tag writes a field's tag.
func (r *reader) tag(f *field, as protowire.Type) {
	r.written = protowire.AppendTag(r.written, f.number, as)
}

// open begins a field whose length shows when all of it is written, close writes the length.
// There is room for one byte of it. For more, what the field holds moves, once for each message
// around it, of which there are MaxDepth at most.
func (r *reader) open(f *field) (begin int) {
	r.tag(f, protowire.BytesType)
	r.written = append(r.written, 0)
	return len(r.written)
}

func (r *reader) close(begin int) {
	var room [10]byte
	length := protowire.AppendVarint(room[:0], uint64(len(r.written)-begin))
	r.written[begin-1] = length[0]
	if rest := length[1:]; len(rest) > 0 {
		r.written = slices.Insert(r.written, begin, rest...)
	}
}
