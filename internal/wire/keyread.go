package wire

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// maxSharedKey is the longest key that is copied in one piece, with its labels as
// parts of the copy: half the allocations of copying each. A label that is kept
// keeps the whole of it, so a longer one, of which Normalize will cut most, is
// copied label by label.
const maxSharedKey = 4 << 10

// DecodeKey reads the bytes of a key. Its labels are copies. They are as the
// tracer wrote them: over-long and invalid ones are for Key.Normalize to mend.
func DecodeKey(raw []byte) (span.Key, error) {
	var k span.Key
	count, n := readArray(raw)
	if n == 0 || count < minKeyElements || count > maxKeyElements {
		return k, malformed("decode key", "expected an array of %d to %d, found %s", minKeyElements, maxKeyElements, found(raw))
	}
	r := keyReader{rest: raw[n:]}
	if len(raw) <= maxSharedKey {
		r.shared = string(raw)
	}
	for i := range int(count) {
		at := r.rest
		if r.label(&k, i); r.err {
			return span.Key{}, malformed("decode key", "element %d: expected %s, found %s", i, keyLabels[i], found(at))
		}
	}
	if len(r.rest) != 0 {
		return span.Key{}, malformed("decode key", "%d bytes follow the last label", len(r.rest))
	}
	return k, nil
}

// keyLabels says what stands at each place of a key, for an error.
var keyLabels = [maxKeyElements]string{
	"the service, a string or nil", "the operation, a string or nil", "the resource, a string or nil",
	"the type, a string or nil", "the kind, a string or nil", "the trace root, nil, true or false", "the HTTP status, an integer below 2^32 or nil",
	"the peer tags, at most 256 strings or nil", "the HTTP method, a string or nil", "the HTTP endpoint, a string or nil",
	"the gRPC status, a string or nil", "the service source, a string or nil", "synthetics, a boolean or nil",
	"the additional tags, at most 256 strings or nil",
}

// keyReader reads labels one after the other. After a fault it reads nothing.
type keyReader struct {
	rest   []byte
	shared string // all of the key, or "" where labels are copied one by one
	err    bool
}

func (r *keyReader) label(k *span.Key, i int) {
	switch i {
	case 0:
		k.Service = r.text()
	case 1:
		k.Operation = r.text()
	case 2:
		k.Resource = r.text()
	case 3:
		k.Type = r.text()
	case 4:
		k.Kind = r.text()
	case 5:
		k.TraceRoot = r.traceRoot()
	case 6:
		k.HTTPStatus = r.status()
	case 7:
		k.PeerTags = r.tags()
	case 8:
		k.HTTPMethod = r.text()
	case 9:
		k.HTTPEndpoint = r.text()
	case 10:
		k.GRPCStatus = r.text()
	case 11:
		k.ServiceSource = r.text()
	case 12:
		k.Synthetics = r.flag()
	default:
		k.AdditionalTags = r.tags()
	}
}

// take steps over n bytes. None means that the reader found no such value.
func (r *keyReader) take(n int) {
	r.err = r.err || n == 0
	r.rest = r.rest[n:]
}

// absent steps over a nil, if one is there.
func (r *keyReader) absent() bool {
	if len(r.rest) == 0 || r.rest[0] != nilLead {
		return false
	}
	r.take(1)
	return true
}

func (r *keyReader) text() string {
	if r.err || r.absent() {
		return ""
	}
	s, n := readStr(r.rest)
	r.take(n)
	return r.copied(s)
}

// copied is a string that was just stepped over.
func (r *keyReader) copied(s []byte) string {
	if r.shared == "" || r.err {
		return string(s)
	}
	end := len(r.shared) - len(r.rest)
	return r.shared[end-len(s) : end]
}

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

func (r *keyReader) tags() []string {
	if r.absent() {
		return nil
	}
	count, n := readArray(r.rest)
	if count > maxKeyTags || int(count) > len(r.rest)-n {
		n = 0
	}
	r.take(n)
	if r.err || count == 0 {
		return nil
	}
	tags := make([]string, count)
	for i := range tags {
		tags[i] = r.text()
	}
	return tags
}
