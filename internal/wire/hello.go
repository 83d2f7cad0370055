package wire

import "github.com/spanstatsd/spanstatsd/internal/span"

// Hello is the first message of a tracer: what it speaks and who it is.
type Hello struct {
	Version uint64
	Client  string // the library's name and version, for the daemon's log
	Origin  span.Origin
}

// originFields are the names that the fields of an origin have on the wire.
var originFields = [...]struct {
	name string
	of   func(o *span.Origin) *string
}{
	{"host", func(o *span.Origin) *string { return &o.Host }},
	{"env", func(o *span.Origin) *string { return &o.Env }},
	{"version", func(o *span.Origin) *string { return &o.Version }},
	{"service", func(o *span.Origin) *string { return &o.Service }},
	{"lang", func(o *span.Origin) *string { return &o.Lang }},
	{"lang_version", func(o *span.Origin) *string { return &o.LangVersion }},
	{"lang_interpreter", func(o *span.Origin) *string { return &o.LangInterpreter }},
	{"tracer_version", func(o *span.Origin) *string { return &o.TracerVersion }},
	{"runtime_id", func(o *span.Origin) *string { return &o.RuntimeID }},
	{"container_id", func(o *span.Origin) *string { return &o.ContainerID }},
	{"entity_id", func(o *span.Origin) *string { return &o.EntityID }},
	{"external_env", func(o *span.Origin) *string { return &o.ExternalEnv }},
	{"process_tags", func(o *span.Origin) *string { return &o.ProcessTags }},
	{"git_commit_sha", func(o *span.Origin) *string { return &o.GitCommitSHA }},
	{"obfuscation_version", func(o *span.Origin) *string { return &o.ObfuscationVersion }},
}

// AppendHello appends a whole frame. Of the origin it writes what is not empty.
func AppendHello(dst []byte, m *Hello) []byte {
	origin := m.Origin
	filled := 0
	for _, field := range originFields {
		if *field.of(&origin) != "" {
			filled++
		}
	}
	return appendCold(dst, TypeHello, 3, func(w *coldWriter) {
		w.number("version", m.Version)
		w.text("client", m.Client)
		w.fields("origin", filled)
		for _, field := range originFields {
			if v := *field.of(&origin); v != "" {
				w.text(field.name, v)
			}
		}
	})
}

// DecodeHello reads a hello's body. A hello that names no version is malformed;
// one that names a version unknown to us is not, so that it can be answered.
func DecodeHello(body []byte) (Hello, error) {
	m, err := readCold(TypeHello, body, func(r *coldReader, m *Hello, name string) {
		switch name {
		case "version":
			m.Version = r.number()
		case "client":
			m.Client = r.text()
		case "origin":
			m.Origin = span.Origin{}
			r.fields(func(r *coldReader, name string) { readOriginField(r, &m.Origin, name) })
		default:
			r.Skip()
		}
	})
	if err == nil && m.Version == 0 {
		return Hello{}, malformed("decode hello", "it names no version, the first is %d", Version)
	}
	return m, err
}

func readOriginField(r *coldReader, o *span.Origin, name string) {
	for _, field := range originFields {
		if field.name == name {
			*field.of(o) = r.text()
			return
		}
	}
	r.Skip()
}
