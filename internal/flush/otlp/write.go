package otlp

import "github.com/spanstatsd/spanstatsd/internal/flush/points"

// writer writes points, and those of a series into a request.
type writer struct {
	request
	window   window  // of the cycle that is being encoded, or was last
	hasCalls bool    // the dialect counts spans apart from their durations
	written  written // points of the series that is being written
	scratch  []byte  // the point of it that is
}

// write adds a point to those of its series. Its window ends with the cycle's.
func (w *writer) write(p *points.Point, start uint64) {
	of := window{start, w.window.end}
	if w.hasCalls && p.Calls > 0 {
		w.scratch = appendNumber(w.scratch[:0], p, of)
		w.written.calls = appendMessage(w.written.calls, fieldPoints, w.scratch)
	}
	if p.Durations.Spans > 0 {
		w.scratch = appendHistogram(w.scratch[:0], p, of)
		if p.Exemplar.Span != 0 {
			w.scratch = appendExemplar(w.scratch, p.Exemplar, w.window)
		}
		w.written.durations = appendMessage(w.written.durations, fieldPoints, w.scratch)
	}
}

// add adds the points that were written of a series, and says whether they fit.
func (w *writer) add() bool {
	defer func() { w.written = written{w.written.calls[:0], w.written.durations[:0]} }()
	return w.request.add(w.written)
}
