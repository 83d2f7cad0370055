package span

import "strings"

// The longest label of each kind, in bytes: the agent's own limits. A longer label is cut,
// never refused, because a tracer's span is worth counting even where its label is not worth
// keeping whole.
const (
	MaxService        = 100
	MaxOperation      = 100
	MaxResource       = 5000
	MaxType           = 100
	MaxLabel          = 200 // every other label, each tag, and the value of an additional one
	MaxPeerTags       = 64
	MaxAdditionalTags = 4
	// MaxOriginField bounds each field of an origin; process tags, a list, get more.
	MaxOriginField = 200
	MaxProcessTags = 4096
)

// IsNormal reports whether a text, or a tag of a list, is what the statistics show. It
// may say no of one that Normalize would leave as it is.
func (l Label) IsNormal(text string) bool {
	spec := &labels[l]
	switch {
	case text == "":
		return !spec.required
	case spec.names != nil:
		return spec.names.isName(text)
	}
	return isText(text, spec.maxBytes)
}

// Normalize bounds every field of the origin and makes it valid UTF-8.
func (o *Origin) Normalize() {
	for _, s := range o.shortFields() {
		*s = Text(*s, MaxOriginField)
	}
	o.ProcessTags = Text(o.ProcessTags, MaxProcessTags)
}

// Clone is the same origin in memory of its own.
func (o Origin) Clone() Origin {
	for _, s := range o.shortFields() {
		*s = strings.Clone(*s)
	}
	o.ProcessTags = strings.Clone(o.ProcessTags)
	return o
}

// shortFields are all but the process tags.
func (o *Origin) shortFields() [14]*string {
	return [...]*string{
		&o.Host, &o.Env, &o.Version, &o.Service, &o.Lang, &o.LangVersion, &o.LangInterpreter,
		&o.TracerVersion, &o.RuntimeID, &o.ContainerID, &o.EntityID, &o.ExternalEnv,
		&o.GitCommitSHA, &o.ObfuscationVersion,
	}
}
