package otlp

// outgoing is the request that is being filled: what does not fit in it begins the next.
type outgoing struct {
	body        *body
	limit       int
	emit        func(body []byte, spans uint64)
	spans       uint64 // that it stands for
	hasPoints   bool
	unencodable uint64 // spans of what fits in none
}

// of begins the metrics of a resource.
func (r *outgoing) of(resource []byte) {
	r.body.end()
	r.body.of(resource)
}

// add adds the points that write writes, which stand for so many spans.
func (r *outgoing) add(spans uint64, write func()) {
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
		r.unencodable += spans
		return
	}
	r.spans, r.hasPoints = r.spans+spans, true
}

// end hands it to emit, unless it is empty, and begins the next.
func (r *outgoing) end() {
	if r.body.end(); r.hasPoints {
		r.emit(r.body.whole, r.spans)
	}
	r.body.whole, r.spans, r.hasPoints = r.body.whole[:0], 0, false
}
