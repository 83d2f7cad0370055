package otlp

// writer writes points, and those of a series into a request.
type writer struct {
	request
	window   window // of the cycle that is being encoded, or was last
	hasCalls bool   // the dialect counts spans apart from their durations
	points   points // of the series that is being written
	scratch  []byte // the point of it that is
}

// write adds a point to those of its series. Its window ends with the cycle's.
func (w *writer) write(p *point, start uint64) {
	of := window{start, w.window.end}
	if w.hasCalls && p.calls > 0 {
		w.scratch = appendNumber(w.scratch[:0], p, of)
		w.points.calls = appendMessage(w.points.calls, fieldPoints, w.scratch)
	}
	if p.durations.Spans > 0 {
		w.scratch = appendHistogram(w.scratch[:0], p, of)
		if p.exemplar.Span != 0 {
			w.scratch = appendExemplar(w.scratch, p.exemplar, w.window)
		}
		w.points.durations = appendMessage(w.points.durations, fieldPoints, w.scratch)
	}
}

// add adds the points that were written of a series, and says whether they fit.
func (w *writer) add() bool {
	defer func() { w.points = points{w.points.calls[:0], w.points.durations[:0]} }()
	return w.request.add(w.points)
}
