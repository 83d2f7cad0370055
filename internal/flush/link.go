package flush

import "sync/atomic"

// Link is what a Destination and its exporter's Watch tell each other. Both sides may
// use it at any time, and neither waits for the other.
type Link struct {
	answers atomic.Bool // the last request was answered
	refuses atomic.Bool // the last payload was not taken

	lost     chan struct{} // holds a token when a payload has found nobody
	returned chan struct{} // holds a token when the destination is back
}

func newLink() *Link {
	return &Link{lost: make(chan struct{}, 1), returned: make(chan struct{}, 1)}
}

// Answers notes that the destination answered a question, be it with a refusal.
func (l *Link) Answers() { l.answers.Store(true) }

// Silent notes that it did not.
func (l *Link) Silent() { l.answers.Store(false) }

// Returned notes that it answers after it did not: no payload that waits need wait any
// longer. Whether a destination that is back takes them is to be seen.
func (l *Link) Returned() {
	l.answers.Store(true)
	l.refuses.Store(false)
	notify(l.returned)
}

// Lost receives when a payload found nobody where the request before was answered.
func (l *Link) Lost() <-chan struct{} { return l.lost }

// tried notes whether a try to deliver was answered and taken. That a destination wants
// no statistics its exporter says.
func (l *Link) tried(a Attempt) {
	if a.Outcome != OutcomeNotWanted {
		l.refuses.Store(a.Outcome != OutcomeAccepted)
	}
	if answered := l.answers.Swap(!a.Silent); answered && a.Silent {
		notify(l.lost)
	}
}

// notify leaves a token for whoever waits on c, unless one is there already.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
