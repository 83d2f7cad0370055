package span

// Outline is where the labels of a key lie in its bytes, which are on the wire as they
// came: numbers without a pointer, so that it costs next to nothing to make one.
// Labels stand in the order of the wire: service, operation, resource, type, kind,
// HTTP method, HTTP endpoint, gRPC status, service source, and behind them the peer
// tags. A key that has anything else has no outline.
type Outline struct {
	Labels     [9]Part
	PeerTags   [16]Part
	Peers      int // how many of them there are
	HTTPStatus uint32
	TraceRoot  TraceRoot
	Synthetics bool
}

// Reset makes it the outline of a key without labels.
func (o *Outline) Reset() {
	o.Labels = [9]Part{} // the tags that count are written
	o.Peers, o.HTTPStatus, o.TraceRoot, o.Synthetics = 0, 0, TraceRootNotSet, false
}

// Part is a part of a key's bytes.
type Part struct{ From, To uint32 }

// IsEmpty says that there is no such label, or nothing in it.
func (p Part) IsEmpty() bool { return p.From == p.To }
