package span

import "bytes"

// Outline is where the labels of a key lie in its bytes, which are on the wire as they
// came: numbers without a pointer, so that it costs next to nothing to make one.
// Labels stand in the order of the wire: service, operation, resource, type, kind,
// HTTP method, HTTP endpoint, gRPC status, service source, and behind them the peer
// tags. A key that has anything else has no outline.
//
// What stands between the resource and the peer tags, its middle, repeats even in a
// flood: type, kind, trace root, HTTP status. An outline that is used again knows the
// last one, and notes of an equal one only that it is.
type Outline struct {
	Labels     [9]Part
	PeerTags   [16]Part
	Peers      int // how many of them there are
	HTTPStatus uint32
	TraceRoot  TraceRoot
	Synthetics bool
	HasMore    bool   // labels behind the peer tags were given
	Repeats    bool   // the middle is the last one: type and kind are not noted again
	Middle     uint64 // number of the middle, 0 where it is not remembered

	last   [maxMiddle]byte // middle
	length int             // of it, 0 where none is remembered
	given  uint64          // numbers
}

// maxMiddle is how long a middle is remembered.
const maxMiddle = 48

// Repeat says how long the middle is with which rest begins, if it is the last one, and
// else 0.
func (o *Outline) Repeat(rest []byte) (length int) {
	if o.length > 0 && bytes.HasPrefix(rest, o.last[:o.length]) {
		length = o.length
	}
	o.Repeats = length > 0
	return length
}

// Forget forgets the last middle, and what is noted of one.
func (o *Outline) Forget() {
	o.Labels[3], o.Labels[4] = Part{}, Part{}
	o.HTTPStatus, o.TraceRoot = 0, TraceRootNotSet
	o.Repeats, o.Middle, o.length = false, 0, 0
}

// Remember remembers the middle that is noted.
func (o *Outline) Remember(middle []byte) {
	if len(middle) > maxMiddle {
		return
	}
	o.length = copy(o.last[:], middle)
	o.given++
	o.Middle = o.given
}

// Part is a part of a key's bytes.
type Part struct{ From, To uint32 }

// IsEmpty says that there is no such label, or nothing in it.
func (p Part) IsEmpty() bool { return p.From == p.To }

// Of is the part of a key.
func (p Part) Of(key string) string { return key[p.From:p.To] }
