package main

import (
	"fmt"
	"math"
)

// losses are spans that a tool reports as lost, by the name of its counter.
type losses map[string]float64

// otherUnit is the value of a counter that has risen but does not count spans, for example one that counts payloads. In
// doubt, it accounts for all lost spans of the scenario.
var otherUnit = math.Inf(1)

func (l losses) spans() (spans float64) {
	for _, n := range l {
		spans += n
	}
	return spans
}

func (l losses) add(more losses) {
	for reason, n := range more {
		if n > 0 {
			l[reason] += n
		}
	}
}

// counters reads the counters of a tool's losses.
type counters interface {
	// read returns the losses that the running process has reported. It fails while the process is starting or stopping.
	read() (losses, error)
	// fromLog returns the losses that a process has logged while it stopped.
	fromLog(log []byte) losses
	// restarted notes that the tool runs in another process, whose counters start at 0.
	restarted()
}

// lossLog adds up the losses of all processes of a tool during a trial. A killed process counts with the last values that
// were read.
type lossLog struct {
	from    counters
	ended   losses // losses of processes that have ended
	current losses
	hasRead bool  // whether the counters were readable at least once
	lastErr error // error of the last attempt
}

func newLossLog(from counters) *lossLog { return &lossLog{from: from, ended: losses{}} }

// update reads the counters of the running process. Errors are ignored, because the process may be stopping.
func (l *lossLog) update() {
	now, err := l.from.read()
	if l.lastErr = err; err == nil {
		l.current, l.hasRead = now, true
	}
}

// check returns an error if the counters were never readable, because then no loss would be accounted for.
func (l *lossLog) check() error {
	if !l.hasRead {
		return fmt.Errorf("read counters of losses: %w", l.lastErr)
	}
	return nil
}

// restarted notes that the process has ended. Its log can report more losses than its last metrics.
func (l *lossLog) restarted(log []byte) {
	if logged := l.from.fromLog(log); logged.spans() > l.current.spans() {
		l.current = logged
	}
	l.ended.add(l.current)
	l.current = nil
	l.from.restarted()
}
