package main

import (
	"fmt"
	"time"
)

// turn is what one turn showed: the raw figures.
type turn struct {
	Cell, Way string
	Rate      int     // requests a second that were due
	Served    float64 // and that were answered
	Failed    int     // answered wrongly, or not
	CPU       parts   // µs a request
	Peak      parts   // MiB
	P50, P99  float64 // ms
	Pauses    int     // for collections, within the window
	PauseMs   float64
	Window    int // requests
	Requests  int // from first to last
	Spans     int // of them that count
	Counted   counts
	Traces    int // that the agent sent on
}

// windows are how long a turn warms up at most, and measures.
type windows struct{ warm, measured time.Duration }

// take runs a turn.
func take(p places, c cell, w way, lasts windows) (t turn, err error) {
	pod, err := raise(p, c, w)
	if err != nil {
		return t, err
	}
	defer pod.clear()
	load := newLoad(pod.address)
	if err := pod.warm(load, c, lasts.warm); err != nil {
		return t, err
	}
	before, err := pod.read()
	if err != nil {
		return t, err
	}
	window := load.run(c.path, c.app.rate, lasts.measured)
	after, err := pod.read()
	if err != nil {
		return t, err
	}
	t = turn{
		Cell: c.String(), Way: w.name, Rate: c.app.rate, Served: float64(window.requests) / window.lasted.Seconds(), Failed: window.failed,
		CPU: after.cpu.since(before.cpu, window.requests), P50: ms(window.share(0.5)), P99: ms(window.share(0.99)), Window: window.requests, Requests: load.sent, Spans: load.sent * c.app.spans,
	}
	if t.Pauses, t.PauseMs, err = pod.collections.between(before.log, after.log); err != nil {
		return t, err
	}
	if t.Peak, err = pod.each((*process).peak); err != nil {
		return t, err
	}
	time.Sleep(w.rest())
	if err := pod.stop(); err != nil {
		return t, err
	}
	t.Counted, t.Traces, err = pod.backend.seen()
	if err != nil {
		return t, err
	}
	return t, t.check(w)
}

// rest is how long an application lives on, so that all it has is sent. A tracer that
// counts sends every ten seconds, and Java's not when it ends.
func (w way) rest() time.Duration {
	if w.computes {
		return 12 * time.Second
	}
	return 2 * time.Second
}

// check says what can't be: more was counted than was sent, or no traces. What was lost, and
// requests that failed, are figures.
func (t turn) check(w way) error {
	switch {
	case t.Counted.Requests > t.Requests || t.Counted.Hits > t.Spans:
		return fmt.Errorf("%s, %s: of %d requests and %d spans %+v counted", t.Cell, t.Way, t.Requests, t.Spans, t.Counted)
	case w.traced != (t.Traces > 0):
		return fmt.Errorf("%s, %s: the agent sent %d traces", t.Cell, t.Way, t.Traces)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
