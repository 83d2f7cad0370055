package wire

import (
	"bytes"
	"math"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// ReadKey reads the bytes of a key into k. Its labels are parts of raw, not
// copies, and its lists of tags are those that k had, overwritten: so a key that
// nobody will keep costs no memory. It is good until raw is written to, and a
// label that shall outlive it must be cloned. After an error k is empty.
//
// Labels are as the tracer wrote them: over-long and invalid ones are for
// Key.Normalize to mend.
func ReadKey(k *span.Key, raw []byte) error {
	k.Clear()
	r := keyReader{Reader: msgpack.NewReader(raw), raw: raw}
	count := r.Array()
	if count < minKeyElements || count > maxKeyElements {
		return malformed("decode key", "expected an array of %d to %d, found %s", minKeyElements, maxKeyElements, found(raw, 0))
	}
	r.labels(k, count)
	switch {
	case r.Failed():
		k.Clear()
		return malformed("decode key", "element %d: expected %s, found %s", r.read, keyLabels[r.read], found(raw, r.At()))
	case r.Left() != 0:
		k.Clear()
		return malformed("decode key", "%d bytes follow the last label", r.Left())
	}
	return nil
}

// DecodeKey reads the bytes of a key whose labels are to be kept: they are parts
// of a copy.
func DecodeKey(raw []byte) (k span.Key, err error) {
	err = ReadKey(&k, bytes.Clone(raw))
	return k, err
}

// keyLabels says what stands at each place of a key, for an error.
var keyLabels = [maxKeyElements]string{
	"the service, a string or nil", "the operation, a string or nil", "the resource, a string or nil",
	"the type, a string or nil", "the kind, a string or nil", "the trace root, nil, true or false", "the HTTP status, an integer below 2^32 or nil",
	"the peer tags, at most 256 strings or nil", "the HTTP method, a string or nil", "the HTTP endpoint, a string or nil",
	"the gRPC status, a string or nil", "the service source, a string or nil", "synthetics, a boolean or nil",
	"the additional tags, at most 256 strings or nil",
}

// keyReader reads labels one after the other, and counts those that were right.
type keyReader struct {
	msgpack.Reader
	raw  []byte
	read int // labels
}

func (r *keyReader) labels(k *span.Key, count int) {
	k.Service, k.Operation, k.Resource = r.text(), r.text(), r.text()
	if count > 3 {
		k.Type = r.text()
	}
	if count > 4 {
		k.Kind = r.text()
	}
	if count > 5 {
		k.TraceRoot = r.traceRoot()
	}
	if count > 6 {
		k.HTTPStatus = r.status()
	}
	if count > 7 {
		k.PeerTags = r.tags(k.PeerTags)
	}
	if count > 8 {
		k.HTTPMethod = r.text()
	}
	if count > 9 {
		k.HTTPEndpoint = r.text()
	}
	if count > 10 {
		k.GRPCStatus = r.text()
	}
	if count > 11 {
		k.ServiceSource = r.text()
	}
	if count > 12 {
		k.Synthetics = r.flag()
	}
	if count > 13 {
		k.AdditionalTags = r.tags(k.AdditionalTags)
	}
}

// done counts a label that was right.
func (r *keyReader) done() {
	if !r.Failed() {
		r.read++
	}
}

func (r *keyReader) text() string {
	s := r.string()
	r.done()
	return s
}

// string reads a string or nil.
func (r *keyReader) string() string {
	if r.IsNil() {
		return ""
	}
	s := r.Str().Of(r.raw)
	return unsafe.String(unsafe.SliceData(s), len(s))
}

func (r *keyReader) status() (status uint32) {
	if !r.IsNil() {
		status = uint32(r.Uint(math.MaxUint32))
	}
	r.done()
	return status
}

func (r *keyReader) flag() bool {
	is := !r.IsNil() && r.Bool()
	r.done()
	return is
}

func (r *keyReader) traceRoot() span.TraceRoot {
	isSet := r.Lead() != msgpack.Nil
	switch isRoot := r.flag(); {
	case !isSet:
		return span.TraceRootNotSet
	case isRoot:
		return span.TraceRootTrue
	}
	return span.TraceRootFalse
}

// tags reads a list into the room of an empty one.
func (r *keyReader) tags(to []string) []string {
	if !r.IsNil() {
		count := r.Array()
		if count > maxKeyTags {
			r.Fail()
		}
		for ; count > 0 && !r.Failed(); count-- {
			to = append(to, r.string())
		}
	}
	r.done()
	return to
}
