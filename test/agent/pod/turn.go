package main

import (
	"fmt"
	"slices"
	"time"
)

// turn holds the raw measurements of one variant in one run of a cell.
type turn struct {
	Cell, Way string
	Rate      int     // due requests per second
	Served    float64 // successful requests per second
	Failed    int     // failed or unanswered requests
	CPU       parts   // µs per request
	Idle      parts   // µs per second
	Peak      parts   // in MiB
	P50, P99  float64 // in ms
	Pauses    int     // garbage collections in its own slices
	PauseMs   float64
	Billed    int // number of requests
	Interval  int // requests with unique names
	Requests  int // requests sent in total
	Spans     int // counted spans
	Counted   counts
	Traces    int // forwarded by the agent
}

// schedule defines the length of the parts of a run.
type schedule struct {
	warm     time.Duration // maximum
	interval time.Duration
	slice    time.Duration
	settle   time.Duration // before the bill begins
	rounds   int           // billed rounds
}

// take runs a cell with all variants side by side. A side whose accounting or processes fail has no turn.
func take(p places, c cell, lasts schedule) (turns []turn, err error) {
	all, err := startPods(p, c)
	if err != nil {
		return nil, err
	}
	defer clearAll(all)
	if err := warm(all, lasts.warm); err != nil {
		return nil, err
	}
	// From one multiple of ten seconds to the next, like the intervals of statistics.
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

// end stops the pod and returns the measurements and the final accounting.
func (s *side) end() (t turn, err error) {
	requests := s.billed.requests
	t = turn{
		Cell: s.cell.String(), Way: s.variant.name, Rate: s.cell.app.rate,
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
	if err := t.check(s.variant); err != nil {
		return turn{}, err
	}
	return t, nil
}

// spans returns the number of counted spans per request.
func (s *side) spans() int {
	if s.variant.spans != 0 {
		return s.variant.spans
	}
	return s.cell.app.spans
}

// check returns an error for impossible results: more requests counted than sent, or no traces. Lost
// and failed requests are valid results.
func (t turn) check(w variant) error {
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
