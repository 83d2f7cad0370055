package client

import (
	"math/rand/v2"
	"time"
)

const (
	// minInterval and maxInterval bound what a daemon may say of its interval; a schedule
	// goes by no other.
	minInterval = time.Second
	maxInterval = time.Hour

	// leastLead is for what happens between a timer's end and the daemon's having counted.
	// The rest of a lead is drawn, so that not all tracers of a pod send at one moment.
	leastLead = 100 * time.Millisecond
	drawnLead = 200 * time.Millisecond
)

// schedule says how long a buffer that is not full waits for more. At the rates that pods
// have each send costs more than what is sent, because it wakes both processes, and nobody
// reads the statistics before the daemon's interval ends. So a buffer waits for as long as
// it may; but what can be with the daemon before an interval ends is there, or the agent
// would hear of it an interval later.
type schedule struct {
	age      time.Duration // the longest wait
	interval time.Duration // the daemon's; 0: unknown
	lead     time.Duration // the last of an interval is sent so long before it ends
}

// newSchedule goes by what the daemon said of its interval in nanoseconds, 0 where it said
// nothing.
func newSchedule(age time.Duration, interval uint64) schedule {
	s := schedule{age: age, lead: leastLead + rand.N(drawnLead)}
	if interval >= uint64(minInterval) && interval <= uint64(maxInterval) {
		s.interval = time.Duration(interval)
	}
	return s
}

// wait is how long what is published now waits, and with it all that comes before it is
// over. Intervals end at the multiples of their length on the wall clock, which is the
// daemon's too.
func (s *schedule) wait(now time.Time) time.Duration {
	if s.interval == 0 {
		return s.age
	}
	left := s.interval - time.Duration(now.UnixNano())%s.interval - s.lead
	if left <= 0 {
		left += s.interval // the last of this one is on its way already
	}
	return min(s.age, left)
}
