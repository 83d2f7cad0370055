package otlp

import (
	"errors"

	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// ErrUnread is why a body is left to whoever takes it: it is no request, or one that is not read.
var ErrUnread = errors.New("read spans: the body is no ExportTraceServiceRequest of OTLP in protobuf: " +
	"check what the sender writes, or that no proxy changes it")

// StatsComputed is the attribute by which a resource says whether somebody has counted its spans.
const StatsComputed = "_dd.stats_computed"

// Request is one request, decoded. Its table has no groups and no senders: the resources are
// both.
type Request struct {
	spantable.Table
	Places    []Place // by span
	Resources []Resource
	Scopes    []Scope

	ofSpans, ofResources *spantable.Names
}

// Place is where a span lies in the body, and what it says that only OTLP has.
type Place struct {
	At, End             uint32 // of its field in the list of spans, with the tag
	Body                uint32 // where its message begins
	StateField          uint32 // where the field of its tracestate begins, 0 where there is none
	State               spantable.Text
	TraceHigh, TraceLow uint64
	Resource, Scope     uint32
}

// Part is a message with messages of the next kind in it: a resource has scopes, and a scope has
// spans.
type Part struct {
	At, End     int // of its field, with the tag
	Body        int // where its message begins
	First, Last int // of what it has
}

// Resource is what spans were sent by.
type Resource struct {
	Part
	Said              spantable.Text // the message that says who it is
	SaidField         int            // where the field of that begins, 0 where there is none
	FirstTag, LastTag uint32         // its attributes
	IsCounted         bool           // a rule has found that somebody has counted its spans already
}

// Scope is what spans were made by.
type Scope struct {
	Part
	FirstTag, LastTag uint32 // its attributes
	TagBytes          int    // of the message that has them
}

// Release lets go of the body, and of the memory that only a very large one needed. It reports
// whether there was such memory.
func (r *Request) Release() (wasLarge bool) {
	if wasLarge = r.Table.Release(); wasLarge {
		*r = Request{}
	}
	return wasLarge
}

// HasSpans says whether a resource has any.
func (r *Request) HasSpans(of *Resource) bool {
	first, last := r.SpansOf(of)
	return first < last
}

// SpansOf are the spans of a resource, from first to last.
func (r *Request) SpansOf(of *Resource) (first, last int) {
	if of.First == of.Last {
		return 0, 0
	}
	return r.Scopes[of.First].First, r.Scopes[of.Last-1].Last
}
