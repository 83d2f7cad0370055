package span

import (
	"iter"
	"strings"
)

// Origin describes the process that sent a snapshot. Each origin gets a payload of its own in the
// statistics. The struct tags are the names of the fields in the hello message of the native protocol.
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
	// version of the tracer's resource obfuscation; empty if the tracer does not obfuscate resources
	ObfuscationVersion string `wire:"obfuscation_version,omitzero"`
	// other OTLP resource attributes, encoded by AppendAttribute; not part of the native protocol
	Attributes string `wire:"-"`
}

// Common returns an origin with those fields that are equal in o and other. A field that differs becomes
// empty. But Env, Version and Service, by which statistics are grouped, become the placeholder Blocked if they
// differ.
func (o Origin) Common(other Origin) Origin {
	common := func(a, b, fallback string) string {
		if a == b {
			return a
		}
		return fallback
	}
	return Origin{
		Env:                common(o.Env, other.Env, Blocked),
		Version:            common(o.Version, other.Version, Blocked),
		Service:            common(o.Service, other.Service, Blocked),
		Host:               common(o.Host, other.Host, ""),
		Lang:               common(o.Lang, other.Lang, ""),
		LangVersion:        common(o.LangVersion, other.LangVersion, ""),
		LangInterpreter:    common(o.LangInterpreter, other.LangInterpreter, ""),
		TracerVersion:      common(o.TracerVersion, other.TracerVersion, ""),
		RuntimeID:          common(o.RuntimeID, other.RuntimeID, ""),
		ContainerID:        common(o.ContainerID, other.ContainerID, ""),
		EntityID:           common(o.EntityID, other.EntityID, ""),
		ExternalEnv:        common(o.ExternalEnv, other.ExternalEnv, ""),
		ProcessTags:        common(o.ProcessTags, other.ProcessTags, ""),
		GitCommitSHA:       common(o.GitCommitSHA, other.GitCommitSHA, ""),
		ObfuscationVersion: common(o.ObfuscationVersion, other.ObfuscationVersion, ""),
		Attributes:         common(o.Attributes, other.Attributes, ""),
	}
}

// WithoutRuntimeID returns the origin without its runtime ID, so that all worker processes of one service in a pod
// share one payload. It keeps the attributes, because an operator has selected them by name.
func (o Origin) WithoutRuntimeID() Origin {
	o.RuntimeID = ""
	return o
}

// WithoutInstance returns the origin without its attributes and without the fields that identify a process,
// container or host, so that all instances of a service are equal. It returns an origin without attributes
// unchanged.
func (o Origin) WithoutInstance() Origin {
	if o.Attributes != "" {
		o.RuntimeID, o.ContainerID, o.Host, o.Attributes = "", "", "", ""
	}
	return o
}

// ServiceOnly returns an origin with only the service, environment and language of o, which are the same for
// all processes and versions of a service. It also keeps the fact that spans are from an OpenTelemetry SDK,
// but not the version of the SDK.
func (o Origin) ServiceOnly() Origin {
	service := Origin{Service: o.Service, Env: o.Env, Lang: o.Lang}
	if _, isOTLP := o.OTLP(); isOTLP {
		service.TracerVersion = OTLPVersion // exporters recognize OTLP origins by it
	}
	return service
}

// Normalize truncates every field of the origin to its maximum length and makes it valid UTF-8.
func (o *Origin) Normalize() {
	for _, field := range o.shortFields() {
		*field = Text(*field, MaxOriginField)
	}
	o.ProcessTags = Text(o.ProcessTags, MaxProcessTags)
	o.Attributes = Text(o.Attributes, MaxAttributes)
}

// Clone returns a copy of the origin that shares no memory with it.
func (o Origin) Clone() Origin {
	for _, field := range o.shortFields() {
		*field = strings.Clone(*field)
	}
	o.ProcessTags = strings.Clone(o.ProcessTags)
	o.Attributes = strings.Clone(o.Attributes)
	return o
}

// shortFields returns pointers to all fields with the maximum length MaxOriginField.
func (o *Origin) shortFields() [14]*string {
	return [...]*string{
		&o.Host, &o.Env, &o.Version, &o.Service, &o.Lang, &o.LangVersion, &o.LangInterpreter,
		&o.TracerVersion, &o.RuntimeID, &o.ContainerID, &o.EntityID, &o.ExternalEnv,
		&o.GitCommitSHA, &o.ObfuscationVersion,
	}
}

// attributeEnd terminates the name and the value of each attribute in Origin.Attributes.
const attributeEnd = "\x00"

// AppendAttribute appends an attribute to list, an encoded list of attributes in which a NUL byte
// follows each name and each value. The value ends at the first NUL byte. AppendAttribute returns list
// unchanged if the value is empty, or if the list would be longer than MaxAttributes.
func AppendAttribute(list []byte, name, value string) []byte {
	value, _, _ = strings.Cut(value, attributeEnd)
	encodedLength := len(name) + len(attributeEnd) + len(value) + len(attributeEnd)
	if value == "" || len(list)+encodedLength > MaxAttributes {
		return list
	}
	list = append(list, name...)
	list = append(list, attributeEnd...)
	list = append(list, value...)
	return append(list, attributeEnd...)
}

// EachAttribute iterates over the names and values of the origin's attributes.
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

// Attribute returns the value of an attribute, or "" if the origin does not have it.
func (o *Origin) Attribute(name string) string {
	for candidate, value := range o.EachAttribute() {
		if candidate == name {
			return value
		}
	}
	return ""
}

// Names that mark spans of OpenTelemetry SDKs. Receivers set them, and exporters recognize them.
const (
	// OTLPVersion is the prefix of the tracer version of an OpenTelemetry SDK, as the agent writes it.
	OTLPVersion = "otlp-"
	// StatusOK is the additional tag of a span whose status was set to OK explicitly. Its name is the one
	// that OpenTelemetry specifies for protocols without a status field.
	StatusOK = "otel.status_code:OK"
)

// OTLP reports whether the origin is a process with an OpenTelemetry SDK, and returns the version of the
// SDK.
func (o *Origin) OTLP() (version string, isOTLP bool) {
	return strings.CutPrefix(o.TracerVersion, OTLPVersion)
}
