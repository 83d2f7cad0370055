package checkclient

import (
	"bytes"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// readKey reports a key that was not seen before, and how the daemon normalizes its labels. An
// error is about the key's encoding.
func (s *session) readKey(dst *entry, raw []byte) error {
	k := &s.key
	if err := wire.ReadKey(k, raw); err != nil {
		return err //nolint:wrapcheck // the message's own words
	}
	if canonical := wire.AppendKey(nil, k); !bytes.Equal(canonical, raw) {
		s.note(dst, noteAdvice, "its %d bytes are not the canonical %d: shortest forms, nil for what is not "+
			"set, nothing after the last label that is", len(raw), len(canonical))
	}
	normal := *k
	normal.PeerTags, normal.AdditionalTags = slices.Clone(k.PeerTags), slices.Clone(k.AdditionalTags)
	normal.Normalize(s.lang)
	for l := range span.FirstList {
		before, after := *k.Text(l), *normal.Text(l)
		if before != "" {
			dst.add(l.String(), head(before))
		}
		s.change(dst, l, l.String(), before, after)
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		s.readTags(dst, l, *k.Tags(l), len(*normal.Tags(l)))
	}
	if k.TraceRoot != span.TraceRootNotSet {
		dst.add("trace_root", k.TraceRoot == span.TraceRootTrue)
	}
	if k.HTTPStatus != 0 {
		dst.add("http_status", k.HTTPStatus)
		if k.HTTPStatus < 100 || k.HTTPStatus > 599 {
			s.note(dst, noteAdvice, "http_status %d is not one of HTTP: 100 to 599, or nil", k.HTTPStatus)
		}
	}
	if k.Kind != "" && !slices.Contains(kinds, k.Kind) {
		s.note(dst, noteAdvice, "span_kind %q is not one of %s", head(k.Kind), strings.Join(kinds, ", "))
	}
	if k.Synthetics {
		dst.add("synthetics", true)
	}
	return nil
}

// readTags reports a list of tags. The daemon keeps the first kept of them.
func (s *session) readTags(dst *entry, l span.Label, tags []string, kept int) {
	if kept < len(tags) {
		s.note(dst, noteNormalized, "of %d %ss the first %d are kept", len(tags), l, kept)
		tags = tags[:kept]
	}
	list := make([]string, len(tags))
	for i, tag := range tags {
		list[i] = head(tag)
		if i > 0 && tag < tags[i-1] {
			s.note(dst, noteAdvice, "%ss are not in the order of their bytes, as %q before %q: the daemon "+
				"sorts them at each miss, and another order is another key in its table", l, list[i-1],
				list[i])
		}
		name, _, hasValue := strings.Cut(tag, ":")
		s.noteSuspiciousTag(dst, l, tags[:i], name, hasValue)
		s.change(dst, l, l.String()+" "+head(name), tag, l.NormalizeTag(tag))
	}
	if kept > 0 {
		dst.add(l.String()+"s", list)
	}
}

// kinds are the span kinds that an agent knows.
var kinds = []string{"client", "consumer", "internal", "producer", "server"}

// noteSuspiciousTag notes a probable mistake of the tracer's author in a tag. earlier are the tags
// before it in its list.
func (s *session) noteSuspiciousTag(dst *entry, l span.Label, earlier []string, name string, hasValue bool) {
	isTwice := slices.ContainsFunc(earlier, func(tag string) bool {
		other, _, _ := strings.Cut(tag, ":")
		return other == name
	})
	asked := s.config.Features.PeerTags
	switch {
	case !hasValue:
		s.note(dst, noteAdvice, "%s %q has no colon: a tag is key:value", l, head(name))
	case isTwice:
		s.note(dst, noteAdvice, "%s %q stands twice in a list", l, head(name))
	case l == span.LabelPeerTag && !slices.Contains(asked, name) && (name != baseService || len(asked) == 0):
		s.note(dst, noteAdvice, "%s %q is none that features asks for", l, head(name))
	}
}

// baseService is the peer tag of spans within a service. The features do not list it.
const baseService = "_dd.base_service"

// change notes that a label is normalized to another text, or exceeds the budget of its scope.
func (s *session) change(dst *entry, l span.Label, scope, before, after string) {
	if before != after {
		s.note(dst, noteNormalized, "%s %q becomes %q", l, head(before), head(after))
	}
	if after != "" && s.keys.exceeds(scope, after, l.Budget()) {
		s.note(dst, noteNormalized, "%q has more than %d distinct values: what an interval meets beyond so "+
			"many becomes %q", scope, l.Budget(), span.Blocked)
	}
}
