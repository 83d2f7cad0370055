package datadog

import (
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// labeller makes the key of the selected span.
type labeller struct {
	tags
	policy   *Policy
	own      *labelsOf
	services serviceNames
	source   source
	id       rulebookID
	keys     rules.Keys
	isSynth  bool     // its trace, or the span itself, is of a synthetic test
	key      span.Key // that was made last
}

// source is where a table comes from, as far as a rule has to know.
type source uint8

const (
	fromTags   source = iota // a span's kind and its trace's origin are tags
	fromFields               // they are fields of their own, as in v1.0
	fromOTLP                 // the agent's own ingest has made it of OTLP
)

func (r *labeller) traceRoot(s *spantable.Span) span.TraceRoot {
	switch {
	case r.book.rootUnsaid:
		return span.TraceRootNotSet
	case s.Parent == 0:
		return span.TraceRootTrue
	}
	return span.TraceRootFalse
}

// kindName is the label: for the agent one of those that it knows, for a tracer what the span
// says.
func (r *labeller) kindName(s *spantable.Span) string {
	switch {
	case r.book.mending:
		return s.Kind.String()
	case r.source != fromFields:
		return r.plain(decode.LabelKind)
	case s.Kind == spantable.KindUnknown:
		return ""
	}
	return s.Kind.String()
}

// endpoint is what a tracer says of a request over HTTP.
func (r *labeller) endpoint() (endpoint string) {
	for _, l := range r.own.endpoints {
		if endpoint = r.plain(l); endpoint != "" || r.book.emptyEndpoint && r.tag(l) != nil {
			break
		}
	}
	return endpoint
}

// readOwn reads of the selected span what decides whether it counts, as its tracer does.
func (r *labeller) readOwn(s *spantable.Span) {
	if r.source == fromFields {
		return
	}
	t := r.tag(decode.LabelKind)
	if s.Kind = spantable.KindUnknown; t != nil && t.Value == spantable.IsText {
		s.Kind = r.book.kindOf(r.table.Bytes(t.Text()))
	}
	r.isSynth = r.book.isSynthetic(r.plain(decode.LabelOrigin))
}

// kindOf is the kind of a name.
func (b *rulebook) kindOf(name []byte) spantable.Kind {
	for k := spantable.KindInternal; k < spantable.KindOther; k++ {
		if string(name) == k.String() || b.foldsKind && isFolded(name, k.String()) {
			return k
		}
	}
	if len(name) == 0 {
		return spantable.KindUnknown
	}
	return spantable.KindOther
}

// isFolded says whether a text is a name, but for its capitals. Letters beyond ASCII are no
// letters of a kind.
func isFolded(text []byte, name string) bool {
	if len(text) != len(name) {
		return false
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// mainService is the one that payloads with the spans of a trace name, by its root, which is
// selected. The agent takes the root's base service alone; a tracer names what its process is
// configured as, and a span of that service has no base service.
func (r *labeller) mainService(root *spantable.Span) string {
	switch {
	case r.book.mending:
		return r.baseService()
	case r.book.noMainService:
		return ""
	case r.tag(labelBaseService) != nil:
		return r.plain(labelBaseService)
	}
	return r.view(root.Service)
}

// baseService is the service that the selected span's process is configured as.
func (r *labeller) baseService() string {
	if t := r.tag(labelBaseService); t != nil && t.Value == spantable.IsText {
		return r.services.peer(r.text(t.Text()))
	}
	return ""
}
