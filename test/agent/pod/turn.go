package main

import (
	"fmt"
	"slices"
	"time"
)

// turn is what one way showed in one run of a cell: the raw figures.
type turn struct {
	Cell, Way string
	Rate      int     // requests a second that were due
	Served    float64 // and that were answered
	Failed    int     // answered wrongly, or not
	CPU       parts   // µs a request
	Idle      parts   // µs a second
	Peak      parts   // MiB
	P50, P99  float64 // ms
	Pauses    int     // for collections, within its slices
	PauseMs   float64
	Billed    int // requests
	Interval  int // requests whose names are looked for
	Requests  int // from first to last
	Spans     int // of them that count
	Counted   counts
	Traces    int // that the agent sent on
}

// schedule is how long the parts of a run last.
type schedule struct {
	warm     time.Duration // at most
	interval time.Duration
	slice    time.Duration
	settle   time.Duration // before the bill begins
	rounds   int           // that are billed
}

// take runs a cell, all ways side by side. Whose books or processes fail has no turn.
func take(p places, c cell, lasts schedule) (turns []turn, err error) {
	all, err := raiseAll(p, c)
	if err != nil {
		return nil, err
	}
	defer clearAll(all)
	if err := warm(all, lasts.warm); err != nil {
		return nil, err
	}
	// From one multiple of ten seconds to the next, as statistics are kept.
	time.Sleep(time.Until(time.Now().Truncate(lasts.interval).Add(lasts.interval)))
	_ = together(all, func(s *side) error {
		s.interval = s.send(c.namedPath, lasts.interval)
		return nil
	})
	round := time.Duration(len(all)) * lasts.slice
	if err := run(all, int((lasts.settle+round-1)/round), lasts.slice); err != nil {
		return nil, err
	}
	for _, s := range all {
		s.begin()
	}
	if err := run(all, lasts.rounds, lasts.slice); err != nil {
		return nil, err
	}
	time.Sleep(c.app.lives)
	turns = make([]turn, len(all))
	failed := together(all, func(s *side) (err error) {
		turns[slices.Index(all, s)], err = s.end()
		return err
	})
	return slices.DeleteFunc(turns, func(t turn) bool { return t.Cell == "" }), failed
}

// begin begins the bill.
func (s *side) begin() { s.slices, s.billed, s.pauses, s.pauseMs = nil, window{}, 0, 0 }

// end stops the pod, closes its books and says what it showed.
func (s *side) end() (t turn, err error) {
	requests := s.billed.requests
	t = turn{
		Cell: s.cell.String(), Way: s.way.name, Rate: s.cell.app.rate,
		Served: float64(requests) / s.billed.lasted.Seconds(), Failed: s.billed.failed,
		CPU: parts{}.plus(1/float64(max(requests, 1)), bill(s.slices)), Idle: idle(s.slices),
		P50: ms(s.billed.share(0.5)), P99: ms(s.billed.share(0.99)), Pauses: s.pauses, PauseMs: s.pauseMs,
		Billed: requests, Interval: s.interval.requests, Requests: s.load.sent,
		Spans: s.load.sent * s.spans(),
	}
	if t.Peak, err = s.pod.each((*process).peak); err != nil {
		return turn{}, err
	}
	if err := s.pod.stop(); err != nil {
		return turn{}, err
	}
	if t.Counted, t.Traces, err = s.pod.backend.seen(); err != nil {
		return turn{}, err
	}
	if err := t.check(s.way); err != nil {
		return turn{}, err
	}
	return t, nil
}

// spans are those of a request that count.
func (s *side) spans() int {
	if s.way.spans != 0 {
		return s.way.spans
	}
	return s.cell.app.spans
}

// check says what can't be: more was counted than was sent, or no traces. What was lost, and
// requests that failed, are figures.
func (t turn) check(w way) error {
	switch {
	case t.Counted.Requests > t.Requests || t.Counted.Hits > t.Spans:
		return fmt.Errorf("%s, %s: of %d requests and %d spans %+v counted", t.Cell, t.Way, t.Requests,
			t.Spans, t.Counted)
	case (w.tracer != none) != (t.Traces > 0):
		return fmt.Errorf("%s, %s: the agent sent %d traces", t.Cell, t.Way, t.Traces)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
