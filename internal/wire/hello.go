package wire

import (
	"iter"
	"reflect"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Hello is the first message of a tracer: what it speaks and who it is.
type Hello struct {
	Version uint64      `wire:"version"`
	Client  string      `wire:"client"` // the library's name and version, for the daemon's log
	Origin  span.Origin `wire:"origin"`
	Settled bool        `wire:"settled,omitzero"` // the daemon is to say how many spans are settled
	Earlier string      `wire:"earlier,omitzero"` // token of a connection that a daemon has died with
}

// OriginFields are the fields of an origin by the names that they have on the wire.
func OriginFields(o *span.Origin) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for of, field := range coldFields(reflect.ValueOf(o).Elem()) {
			if name, _ := coldName(of); !yield(name, field.String()) {
				return
			}
		}
	}
}

// AppendHello appends a whole frame. Of the origin it writes what is not empty.
func AppendHello(dst []byte, m *Hello) []byte { return appendCold(dst, TypeHello, m) }

// DecodeHello reads a hello's body. A hello that names no version is malformed;
// one that names a version unknown to us is not, so that it can be answered.
func DecodeHello(body []byte) (Hello, error) {
	m, err := readCold[Hello](TypeHello, body)
	if err == nil && m.Version == 0 {
		return Hello{}, malformed("decode hello", len(body), "it names no version, the first is %d", Version)
	}
	return m, err
}
