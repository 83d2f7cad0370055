package otlp

import "github.com/spanstatsd/spanstatsd/internal/flush/points"

// writer writes points, and those of a series into a request.
type writer struct {
	request
	window   window    // of the cycle that is being encoded, or was last
	hasCalls bool      // the dialect counts spans apart from their durations
	bounds   []float64 // of explicit buckets, as they are sent; nil where buckets are exponential
	nanos    float64   // of the unit that they are in
	written  written   // points of the series that is being written
	scratch  []byte    // the point of it that is
}

// write adds a point to those of its series. Its window ends with the cycle's.
func (w *writer) write(p *points.Point, start uint64) {
	of := window{start, w.window.end}
	if w.hasCalls && p.Calls > 0 {
		w.scratch = appendNumber(w.scratch[:0], p, of)
		w.written.calls = appendMessage(w.written.calls, fieldPoints, w.scratch)
	}
	if p.Durations.Spans > 0 {
		if w.scratch = w.scratch[:0]; w.bounds == nil {
			w.scratch = appendHistogram(w.scratch, p, of)
			w.scratch = w.appendExemplar(w.scratch, fieldPointExemplars, p.Exemplar)
		} else {
			w.scratch = w.appendExplicit(w.scratch, p, of)
		}
		w.written.durations = appendMessage(w.written.durations, fieldPoints, w.scratch)
	}
}

// appendExplicit appends the body of a point with explicit buckets, its fields in their order.
func (w *writer) appendExplicit(b []byte, p *points.Point, of window) []byte {
	b = w.appendCounts(b, p, of)
	b = w.appendExemplar(b, fieldExplicitExemplars, p.Exemplar)
	return appendAttributes(b, fieldExplicitAttributes, p.Attributes)
}

// add adds the points that were written of a series, and says whether they fit.
func (w *writer) add() bool {
	defer func() { w.written = written{w.written.calls[:0], w.written.durations[:0]} }()
	return w.request.add(w.written)
}
