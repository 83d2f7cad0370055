package oteltraces

// walked is a body that was walked, and what of it goes on. A Counter and a Translator are one,
// each with what it makes of the body beside it.
type walked struct {
	payload payload
	states  stateMemo
	traces  traceTable
	raised  []byte // a tracestate with another threshold

	threshold uint64 // that spans are raised to
	isMarked  bool   // resources say that their spans are counted
}

// Left is what of a body goes on.
type Left struct {
	IsWhole    bool  // all of it, as it came
	Size       int   // bytes
	Kept, Gone Tally // counted where a Keeping says which traces go on
}

// Measure finds out what is left of the body that was walked last: of a Keeping the traces that
// go on, all where there is none. If isMarked, each resource of which a span goes on says
// then that its spans are counted, or keeps what it says where they were counted before. A
// body that was not read goes on as it is.
func (w *walked) Measure(k *Keeping, isMarked bool) (left Left) {
	p := &w.payload
	w.threshold, w.isMarked = 0, isMarked
	left.IsWhole = true
	if left.Size = len(p.body); p.err != nil {
		return left
	}
	if k != nil {
		w.threshold = thresholdOf(k.Share, precision)
		left.IsWhole = w.judge(k)
		left.Kept, left.Gone = w.tally()
	}
	for i := range p.resources {
		r := &p.resources[i]
		if r.mark = unmarked; isMarked && !r.isCounted && p.hasSpans(r) {
			r.mark = p.markOf(r)
		}
		left.IsWhole = left.IsWhole && r.mark == unmarked
	}
	if !left.IsWhole {
		left.Size = w.measure()
	}
	return left
}

// AppendLeft appends what Measure has found to be left.
func (w *walked) AppendLeft(dst []byte) []byte {
	p, from := &w.payload, 0
	for i := range p.resources {
		r := &p.resources[i]
		dst = append(dst, p.body[from:r.at]...)
		dst, from = w.appendResource(dst, r), r.behind
	}
	return append(dst, p.body[from:]...)
}

// Spans is how many spans the last body held.
func (w *walked) Spans() int { return len(w.payload.records) }

// hasSpans says whether a resource has any.
func (p *payload) hasSpans(r *resource) bool {
	return r.first < r.last && p.scopes[r.first].first < p.scopes[r.last-1].last
}

// release lets go of the body.
func (w *walked) release() {
	w.payload.body = nil
	w.states.forget()
}
