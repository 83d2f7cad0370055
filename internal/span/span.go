// Package span is the vocabulary that every other room shares: what a key is,
// what an origin is, and which small facts a snapshot carries besides them.
//
// It holds values and the rules that make two of them equal, and nothing that
// runs: no goroutine, no socket, no clock. It imports nothing of ours, so that
// the client library, the protocol and the daemon can all speak it without
// knowing one another.
//
// A Key is labels as a person reads them. The hot path never sees one: on the
// wire a key is opaque bytes, and behind ingest it is a dense number. Keys are
// decoded, normalised and compared only where a label is met for the first
// time in an interval.
package span

// Blocked stands in the place of a label that is over its budget: the span is
// still counted, its label is not told apart any more. It is the value that
// the Datadog tracers use, so that a reader of the statistics meets one word.
const Blocked = "tracer_blocked_value"

// Key is the labels that a snapshot is counted under. Two snapshots with equal
// keys, of one origin and one bucket, meet in one aggregate.
//
// An absent optional label and an empty one are the same.
type Key struct {
	Service        string
	Operation      string
	Resource       string
	Type           string
	Kind           string
	TraceRoot      TraceRoot
	HTTPStatus     uint32
	PeerTags       []string // "key:value"; once normal, in the order of their bytes
	HTTPMethod     string
	HTTPEndpoint   string
	GRPCStatus     string // decimal text, "" for none
	ServiceSource  string
	Synthetics     bool
	AdditionalTags []string // "key:value", at most MaxAdditionalTags
}

// Clear empties the key and keeps the room of its lists, which then hold no tag that the
// key ever had.
func (k *Key) Clear() {
	peers, additional := k.PeerTags[:cap(k.PeerTags)], k.AdditionalTags[:cap(k.AdditionalTags)]
	clear(peers)
	clear(additional)
	*k = Key{PeerTags: peers[:0], AdditionalTags: additional[:0]}
}

// TraceRoot says whether a span is the root of its trace. Its values are those
// of the agent's own three-valued type.
type TraceRoot uint8

const (
	TraceRootNotSet TraceRoot = 0
	TraceRootTrue   TraceRoot = 1
	TraceRootFalse  TraceRoot = 2
)

// Flags are the yes-or-no facts of one snapshot that are not part of its key.
type Flags uint8

const (
	// Error marks a span that failed.
	Error Flags = 1 << iota
	// TopLevel marks the span through which its trace entered a service.
	TopLevel

	// KnownFlags is every flag that this version gives a meaning to.
	KnownFlags = Error | TopLevel
)

// Origin is who sent a snapshot. There is one payload an origin.
// The tags are the names that a tracer gives the fields in hello.
type Origin struct {
	Host            string `wire:"host,omitzero"`
	Env             string `wire:"env,omitzero"`
	Version         string `wire:"version,omitzero"`
	Service         string `wire:"service,omitzero"`
	Lang            string `wire:"lang,omitzero"`
	LangVersion     string `wire:"lang_version,omitzero"`
	LangInterpreter string `wire:"lang_interpreter,omitzero"`
	TracerVersion   string `wire:"tracer_version,omitzero"`
	RuntimeID       string `wire:"runtime_id,omitzero"`
	ContainerID     string `wire:"container_id,omitzero"`
	EntityID        string `wire:"entity_id,omitzero"`
	ExternalEnv     string `wire:"external_env,omitzero"`
	ProcessTags     string `wire:"process_tags,omitzero"` // comma-separated "key:value"
	GitCommitSHA    string `wire:"git_commit_sha,omitzero"`
	// non-empty when the tracer obfuscated resources itself
	ObfuscationVersion string `wire:"obfuscation_version,omitzero"`
}

// Common is what stands for two origins at once: all that they have in common. Where names
// differ that statistics are told apart by, Blocked stands in their place as in that of a
// label; of a host, a process or a container nothing is said, since none of that name is.
func (o Origin) Common(other Origin) Origin {
	both := func(a, b, otherwise string) string {
		if a == b {
			return a
		}
		return otherwise
	}
	return Origin{
		Env: both(o.Env, other.Env, Blocked), Version: both(o.Version, other.Version, Blocked),
		Service: both(o.Service, other.Service, Blocked),
		Host:    both(o.Host, other.Host, ""), Lang: both(o.Lang, other.Lang, ""),
		LangVersion:        both(o.LangVersion, other.LangVersion, ""),
		LangInterpreter:    both(o.LangInterpreter, other.LangInterpreter, ""),
		TracerVersion:      both(o.TracerVersion, other.TracerVersion, ""),
		RuntimeID:          both(o.RuntimeID, other.RuntimeID, ""),
		ContainerID:        both(o.ContainerID, other.ContainerID, ""),
		EntityID:           both(o.EntityID, other.EntityID, ""),
		ExternalEnv:        both(o.ExternalEnv, other.ExternalEnv, ""),
		ProcessTags:        both(o.ProcessTags, other.ProcessTags, ""),
		GitCommitSHA:       both(o.GitCommitSHA, other.GitCommitSHA, ""),
		ObfuscationVersion: both(o.ObfuscationVersion, other.ObfuscationVersion, ""),
	}
}

// Conflated is the origin without what tells one process from its siblings:
// sixteen worker processes of one service leave the pod as one payload.
func (o Origin) Conflated() Origin {
	o.RuntimeID = ""
	return o
}
