package datadog

import "errors"

// Format is one of the agent's trace endpoints, by how its bodies are written.
type Format uint8

const (
	FormatV04 Format = iota // also /v0.3/traces
	FormatV05
	FormatV07
	FormatV1
)

// String is the format's endpoint.
func (f Format) String() string { return [...]string{"v0.4", "v0.5", "v0.7", "v1.0"}[f] }

// isByName says whether the format writes strings where they are used.
func (f Format) isByName() bool { return f == FormatV04 || f == FormatV07 }

// ErrUnread is what a body gives that is left to the agent: it is no msgpack of its format, or
// has what no tracer writes and only the agent can judge.
var ErrUnread = errors.New("read traces: the body is not what its endpoint takes")
