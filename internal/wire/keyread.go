package wire

import (
	"bytes"
	"math"
	"unsafe"

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
	count, n := readArray(raw)
	if n == 0 || count < minKeyElements || count > maxKeyElements {
		return malformed("decode key", "expected an array of %d to %d, found %s", minKeyElements, maxKeyElements, found(raw))
	}
	r := keyReader{rest: raw[n:]}
	r.labels(k, count)
	switch {
	case r.err:
		k.Clear()
		return malformed("decode key", "element %d: expected %s, found %s", r.read, keyLabels[r.read], found(r.rest))
	case len(r.rest) != 0:
		k.Clear()
		return malformed("decode key", "%d bytes follow the last label", len(r.rest))
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

// keyReader reads labels one after the other. After a fault it reads nothing and
// stays where that is. Decoding is a good part of a miss, so labels stand in a row
// and a short string is read where it stands.
type keyReader struct {
	rest []byte
	read int // labels
	err  bool
}

func (r *keyReader) labels(k *span.Key, count uint32) {
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

// take steps over the n bytes of a label. None means that there is no such label.
func (r *keyReader) take(n int) bool {
	if n == 0 || r.err {
		r.err = true
		return false
	}
	r.rest = r.rest[n:]
	r.read++
	return true
}

// absent steps over a nil, if one is there.
func (r *keyReader) absent() bool {
	return len(r.rest) != 0 && r.rest[0] == nilLead && r.take(1)
}

func (r *keyReader) text() string {
	if b := r.rest; len(b) != 0 && !r.err {
		lead := b[0]
		if n := 1 + int(lead&0x1f); lead&0xe0 == fixStr && n <= len(b) {
			r.rest = b[n:]
			r.read++
			return textOf(b[1:n])
		}
	}
	return r.otherText()
}

// otherText reads what is not a short string.
func (r *keyReader) otherText() string {
	if r.absent() {
		return ""
	}
	s, n := readStr(r.rest)
	if !r.take(n) {
		return ""
	}
	return textOf(s)
}

func textOf(s []byte) string { return unsafe.String(unsafe.SliceData(s), len(s)) }

func (r *keyReader) status() uint32 {
	if r.absent() {
		return 0
	}
	v, isNegative, n := readInteger(r.rest)
	if isNegative || v > math.MaxUint32 {
		n = 0
	}
	r.take(n)
	return uint32(v)
}

func (r *keyReader) flag() bool {
	switch {
	case r.absent():
		return false
	case len(r.rest) != 0 && (r.rest[0] == trueVal || r.rest[0] == falseVal):
		value := r.rest[0] == trueVal
		r.take(1)
		return value
	}
	r.err = true
	return false
}

func (r *keyReader) traceRoot() span.TraceRoot {
	if r.absent() {
		return span.TraceRootNotSet
	}
	if r.flag() {
		return span.TraceRootTrue
	}
	return span.TraceRootFalse
}

// tags reads a list into the room of an empty one. It is one label.
func (r *keyReader) tags(to []string) []string {
	if r.absent() {
		return to
	}
	count, n := readArray(r.rest)
	if count > maxKeyTags || int(count) > len(r.rest)-n {
		n = 0
	}
	label := r.read
	if !r.take(n) {
		return to
	}
	for range count {
		to = append(to, r.text())
	}
	r.read = label
	if !r.err {
		r.read++
	}
	return to
}
