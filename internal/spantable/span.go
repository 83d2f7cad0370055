package spantable

// Span is one span: its fields, and which of the table's tags are its own.
type Span struct {
	ID, Parent      uint64
	Start, Duration uint64 // nanoseconds, since 1970 and since Start
	Service         Text
	Name            Text
	Resource        Text
	Type            Text // of its work
	First, Last     uint32
	Kind            Kind
	Status          Status
	// IsDoubtful says that only the agent knows what its type is: whoever would count it leaves
	// the body to the agent.
	IsDoubtful bool
}

// Status is how a span ended.
type Status uint8

const (
	StatusUnset Status = iota
	StatusOK           // an application has set it
	StatusError
	StatusOther // of OTLP, which has none more
)

// Group is a run of spans that have a sender in common, and what their format says of all of
// them: a trace of Datadog's formats, the spans of a resource in OTLP.
type Group struct {
	First, Last uint32 // spans
	At, End     uint32 // of its bytes in the body
	Strings     uint32 // that the body has brought by its end, where it numbers them
	Sender      uint32

	// Of a trace.
	TraceHigh, TraceLow uint64
	Origin              Text
	Priority            int32
	HasPriority         bool
	IsHighRead          bool // else a tag of its spans has TraceHigh
}

// Sender is what a process says of itself.
type Sender struct {
	Env, Version, Host, Commit Text
	Container                  Text
	Lang, LangVersion          Text
	TracerVersion              Text
	ProcessTags                Text
	HasProcessTags             bool
}
