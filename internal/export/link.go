package export

import "sync/atomic"

// Link connects a destination with Exporter.Watch. It is safe for concurrent use, and no method
// blocks.
type Link struct {
	isReachable atomic.Bool // the last request was answered
	isRefusing  atomic.Bool // the last payload was not accepted

	lost      chan struct{} // holds a token after a payload was not answered
	recovered chan struct{} // holds a token after the destination has recovered
}

func newLink() *Link {
	return &Link{lost: make(chan struct{}, 1), recovered: make(chan struct{}, 1)}
}

// SetReachable records that the destination answered a probe, even if with an error.
func (l *Link) SetReachable() { l.isReachable.Store(true) }

// SetSilent records that the destination did not answer a probe.
func (l *Link) SetSilent() { l.isReachable.Store(false) }

// SetRecovered records that the destination answers again, and notifies the sender, which can end its pause.
// Whether the destination accepts payloads is not known yet.
func (l *Link) SetRecovered() {
	l.isReachable.Store(true)
	l.isRefusing.Store(false)
	notify(l.recovered)
}

// Lost returns a channel that receives when the destination stops responding: a payload was not answered, although the
// request before it was.
func (l *Link) Lost() <-chan struct{} { return l.lost }

// recordAttempt records whether the destination answered an attempt to deliver a payload, and whether it accepted
// the payload. If it has stopped answering, recordAttempt also sends to the channel that Lost returns.
func (l *Link) recordAttempt(a Attempt) {
	switch a.Outcome {
	case OutcomeAccepted:
		l.isRefusing.Store(false)
	case OutcomeNotWanted: // not a refusal of this payload: Exporter.AcceptsStatistics reports this state
	default:
		l.isRefusing.Store(true)
	}
	isReachable := !a.Silent
	wasReachable := l.isReachable.Swap(isReachable)
	if wasReachable && !isReachable {
		notify(l.lost)
	}
}

// notify puts a token into a channel with a capacity of one. It does nothing if the channel is full.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
