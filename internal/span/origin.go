package span

import (
	"iter"
	"strings"
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
	// what its resource says besides, of OTLP, see AppendAttribute; no tracer sends it
	Attributes string `wire:"-"`
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
		Attributes:         both(o.Attributes, other.Attributes, ""),
	}
}

// Conflated is the origin without what tells one process from its siblings:
// sixteen worker processes of one service leave the pod as one payload. Attributes stay, since
// somebody has asked for them by name.
func (o Origin) Conflated() Origin {
	o.RuntimeID = ""
	return o
}

// OfService is the origin without what tells one process, or the place that it runs in, from those of
// the same service, as far as attributes say that.
func (o Origin) OfService() Origin {
	if o.Attributes != "" {
		o.RuntimeID, o.ContainerID, o.Host, o.Attributes = "", "", "", ""
	}
	return o
}

// ServiceOnly is the origin with nothing but what all spans of a service have in common, whichever
// process or version they are of.
func (o Origin) ServiceOnly() Origin {
	service := Origin{Service: o.Service, Env: o.Env, Lang: o.Lang}
	if _, is := o.OTLP(); is {
		service.TracerVersion = OTLPVersion // names go by it
	}
	return service
}

// Normalize bounds every field of the origin and makes it valid UTF-8.
func (o *Origin) Normalize() {
	for _, s := range o.shortFields() {
		*s = Text(*s, MaxOriginField)
	}
	o.ProcessTags = Text(o.ProcessTags, MaxProcessTags)
	o.Attributes = Text(o.Attributes, MaxAttributes)
}

// Clone is the same origin in memory of its own.
func (o Origin) Clone() Origin {
	for _, s := range o.shortFields() {
		*s = strings.Clone(*s)
	}
	o.ProcessTags, o.Attributes = strings.Clone(o.ProcessTags), strings.Clone(o.Attributes)
	return o
}

// shortFields are all but the process tags and the attributes.
func (o *Origin) shortFields() [14]*string {
	return [...]*string{
		&o.Host, &o.Env, &o.Version, &o.Service, &o.Lang, &o.LangVersion, &o.LangInterpreter,
		&o.TracerVersion, &o.RuntimeID, &o.ContainerID, &o.EntityID, &o.ExternalEnv,
		&o.GitCommitSHA, &o.ObfuscationVersion,
	}
}

// attributeEnd stands behind the name and the value of each of an origin's attributes.
const attributeEnd = "\x00"

// AppendAttribute appends one of an origin's attributes, as they stand in one text: so origins can be
// compared, and those that say the same in the same order are one. Where the text would be longer
// than MaxAttributes it is left out.
func AppendAttribute(text []byte, name, value string) []byte {
	value, _, _ = strings.Cut(value, attributeEnd)
	if value == "" || len(text)+len(name)+len(value)+2*len(attributeEnd) > MaxAttributes {
		return text
	}
	return append(append(append(append(text, name...), attributeEnd...), value...), attributeEnd...)
}

// EachAttribute visits the attributes of an origin.
func (o *Origin) EachAttribute() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for rest := o.Attributes; rest != ""; {
			var name, value string
			name, rest, _ = strings.Cut(rest, attributeEnd)
			value, rest, _ = strings.Cut(rest, attributeEnd)
			if !yield(name, value) {
				return
			}
		}
	}
}

// Attribute is the value of one of an origin's attributes, empty where it has none.
func (o *Origin) Attribute(name string) string {
	for known, value := range o.EachAttribute() {
		if known == name {
			return value
		}
	}
	return ""
}

// These are the names by which a span of an OpenTelemetry SDK is known, from where it is
// counted to where it is named again.
const (
	// OTLPVersion begins the tracer's version of such an origin, as the agent writes it.
	OTLPVersion = "otlp-"
	// StatusOK is the additional tag of a span whose status is OK and not just unset, by
	// OpenTelemetry's name for it outside of OTLP.
	StatusOK = "otel.status_code:OK"
)

// OTLP says whether the origin is a process with an OpenTelemetry SDK, and which version
// that has.
func (o *Origin) OTLP() (version string, is bool) {
	return strings.CutPrefix(o.TracerVersion, OTLPVersion)
}
