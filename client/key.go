package client

import "github.com/spanstatsd/spanstatsd/internal/span"

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
