package client

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Snapshot describes one finished span. Publish reads it, and retains only its labels, as strings,
// for a while.
type Snapshot struct {
	Key      Key
	Encoded  *EncodedKey   // used instead of Key, if not nil
	Duration time.Duration // negative durations count as 0
	End      time.Time
	Error    bool
	TopLevel bool
	// Weight is the number of spans that this one represents, if it was sampled. 0 and invalid values
	// mean 1. The maximum is 2^32.
	Weight float64
}

// facts returns the fields of a snapshot, except for its key, in the terms of the protocol. It
// replaces invalid values by the nearest valid ones, because the daemon would close the connection.
func (s *Snapshot) facts() (duration uint64, end int64, flags span.Flags, weight float64) {
	flags = flag(s.Error)*span.Error | flag(s.TopLevel)*span.TopLevel
	return uint64(max(s.Duration, 0)), s.End.UnixNano(), flags, validWeight(s.Weight)
}

// validWeight returns the nearest valid weight. 0 and invalid values mean 1.
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

// flag returns 1 for true. The compiler generates no branch for it, which would be hard to predict.
func flag(is bool) (f span.Flags) {
	if is {
		f = 1
	}
	return f
}

// Key contains the labels that a snapshot is counted under.
type Key = span.Key

// Origin describes the publisher: host, env, service, language and so on.
type Origin = span.Origin

// TraceRoot tells whether a span is the root of its trace.
type TraceRoot = span.TraceRoot

const (
	TraceRootNotSet = span.TraceRootNotSet
	TraceRootTrue   = span.TraceRootTrue
	TraceRootFalse  = span.TraceRootFalse
)
