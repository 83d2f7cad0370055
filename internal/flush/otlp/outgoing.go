package otlp

import "github.com/spanstatsd/spanstatsd/internal/flush/totals"

// outgoing is the request that is being filled: what does not fit in it begins the next.
type outgoing struct {
	body        *body
	limit       int
	emit        func(body []byte, spans uint64, said *totals.Said)
	spans       uint64       // that it stands for
	said        *totals.Said // nil where points are deltas
	hasPoints   bool
	unencodable uint64 // spans of what fits in none
}

// of begins the metrics of a resource.
func (r *outgoing) of(resource []byte) {
	r.body.end()
	r.body.of(resource)
}

// add adds the points that write writes, and says whether they fit.
func (r *outgoing) add(write func()) (fits bool) {
	r.body.mark()
	write()
	if r.body.size() > r.limit && r.hasPoints {
		r.body.back()
		r.end()
		r.body.mark()
		write()
	}
	if r.body.size() > r.limit {
		r.body.back()
		return false
	}
	r.hasPoints = true
	return true
}

// addDelta adds points that stand for so many spans.
func (r *outgoing) addDelta(spans uint64, write func()) {
	if r.add(write) {
		r.spans += spans
	} else {
		r.unencodable += spans
	}
}

// addTotal adds the points of a running total. What fits in no request will not arrive, so
// nothing is to wait for it.
func (r *outgoing) addTotal(s *totals.Series, write func()) {
	if !r.add(write) {
		said := &totals.Said{}
		said.Add(s)
		r.unencodable += said.Arrive()
		return
	}
	if r.said == nil {
		r.said = &totals.Said{}
	}
	r.said.Add(s)
}

// end hands it to emit, unless it is empty, and begins the next.
func (r *outgoing) end() {
	if r.body.end(); r.hasPoints {
		r.emit(r.body.whole, r.spans, r.said)
	}
	r.body.whole, r.spans, r.said, r.hasPoints = r.body.whole[:0], 0, nil, false
}
