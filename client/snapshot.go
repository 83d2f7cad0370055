package client

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Snapshot describes one finished span. Publish does not keep it, but keeps the strings of its labels for a
// while.
type Snapshot struct {
	Key      Key
	Encoded  *EncodedKey   // used instead of Key unless nil
	Duration time.Duration // negative values count as 0
	End      time.Time
	Error    bool
	TopLevel bool
	// Weight is the number of spans that this one represents, if it was sampled. Values that are not
	// positive count as 1, and values above 2^32 as 2^32.
	Weight float64
}

// wireFields returns the fields of a snapshot in the format of the protocol. It replaces invalid values by the nearest
// valid ones, because the daemon closes a connection on which it receives an invalid value.
func (s *Snapshot) wireFields() (duration uint64, end int64, flags span.Flags, weight float64) {
	duration = uint64(max(s.Duration, 0))
	end = s.End.UnixNano()
	flags = flagIf(s.Error)*span.Error | flagIf(s.TopLevel)*span.TopLevel
	return duration, end, flags, validWeight(s.Weight)
}

// validWeight returns weight, the number of spans that a sampled span represents, but wire.MaxWeight at most. It
// returns 1 for an invalid weight, and for 0, which means that the weight is not set.
func validWeight(weight float64) float64 {
	if weight > wire.MaxWeight {
		return wire.MaxWeight
	}
	if wire.ValidWeight(weight) {
		return weight
	}
	return 1
}

// flagIf returns 1 if isSet is true, and 0 otherwise. The compiler generates no branch for it, which the processor would
// often predict wrongly.
func flagIf(isSet bool) (flag span.Flags) {
	if isSet {
		flag = 1
	}
	return flag
}

// Key is the set of labels under which a snapshot is counted. Its fields are optional, except Service:
//
//	Service        string
//	Operation      string    // such as http.request
//	Resource       string    // such as GET /users/{id}
//	Type           string    // such as web, sql or cache
//	Kind           string    // server, client, producer, consumer or internal
//	TraceRoot      TraceRoot // whether the span is the root of its trace
//	HTTPStatus     uint32    // 0 if absent
//	PeerTags       []string  // "key:value", for calls to another service
//	HTTPMethod     string
//	HTTPEndpoint   string    // the route
//	GRPCStatus     string    // decimal digits
//	ServiceSource  string    // integration that has set the service
//	Synthetics     bool      // a synthetic test sent the request
//	AdditionalTags []string  // "key:value"
type Key = span.Key

// Origin describes the process that publishes. All fields are optional strings. The most important ones are
//
//	Service, Env, Version                 // of the process
//	Host, ContainerID, RuntimeID          // where it runs
//	Lang, LangVersion, TracerVersion      // how it is instrumented
//	GitCommitSHA, ProcessTags, EntityID   // for a Datadog agent
type Origin = span.Origin

// TraceRoot states whether a span is the root of its trace.
type TraceRoot = span.TraceRoot

const (
	TraceRootNotSet = span.TraceRootNotSet
	TraceRootTrue   = span.TraceRootTrue
	TraceRootFalse  = span.TraceRootFalse
)
