package client

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Snapshot is what is told of one finished span. Publish reads it and keeps
// nothing of it but labels, as the strings they are, for a while.
type Snapshot struct {
	Key      Key
	Encoded  *EncodedKey   // instead of Key, unless it is nil
	Duration time.Duration // less than 0 counts as 0
	End      time.Time
	Error    bool
	TopLevel bool
	// Weight is how many spans this one stands for, where it was sampled before
	// it came here. 0 means 1; so does what is no number above 0. 2^32 at most.
	Weight float64
}

// facts is what a snapshot says besides its key, in the protocol's terms. A
// value that the daemon would take for malformed is bent to the nearest that it
// takes, because it would close the connection over it.
func (s *Snapshot) facts() (duration uint64, end int64, flags span.Flags, weight float64) {
	flags = flag(s.Error)*span.Error | flag(s.TopLevel)*span.TopLevel
	return uint64(max(s.Duration, 0)), s.End.UnixNano(), flags, validWeight(s.Weight)
}

func validWeight(weight float64) float64 {
	switch {
	case weight == 0:
		return 1
	case wire.ValidWeight(weight):
		return weight
	case weight > wire.MaxWeight:
		return wire.MaxWeight
	}
	return 1
}

// flag is 1 for true. It is no branch: what fails is as good as random.
func flag(is bool) (f span.Flags) {
	if is {
		f = 1
	}
	return f
}

// Key is the labels that a snapshot is counted under.
type Key = span.Key

// Origin is who publishes: host, env, service, language and so on.
type Origin = span.Origin

// TraceRoot says whether a span is the root of its trace.
type TraceRoot = span.TraceRoot

const (
	TraceRootNotSet = span.TraceRootNotSet
	TraceRootTrue   = span.TraceRootTrue
	TraceRootFalse  = span.TraceRootFalse
)
