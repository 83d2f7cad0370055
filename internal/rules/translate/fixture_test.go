package translate_test

import (
	"math"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules/translate"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// agentSpan is a span of the table, with its texts as strings.
type agentSpan struct {
	Service, Name, Resource, Type    string
	SpanID, ParentID, Start, Elapsed uint64
	Kind                             string
	IsFailed                         bool
	Texts                            map[string]string
	Numbers                          map[string]float64
}

// sent is one sender with its traces.
type sent struct {
	Lang, TracerVersion, Container, Env, Host, Version, Commit string
	Origins                                                    []string
	Traces                                                     [][]agentSpan
}

// wantedTags contains some of the tags that rules ask for.
var wantedTags = []string{
	"span.kind", "http.status_code", "_dd.measured", "_sample_rate", "env", "version", "db.name",
	"peer.service",
	"http.server_name", "rpc.grpc.status_code", "_dd.base_service", "_dd.origin", "_dd.git.commit.sha",
}

// translated holds a translator with its request and its table.
type translated struct {
	*translate.Translator
	names   *spantable.Names
	request otlp.Request
	table   spantable.Table
}

func translator(t testing.TB, wanted ...string) *translated {
	t.Helper()
	names := spantable.NewNames(append([]string{""}, wanted...))
	c, err := translate.New(names)
	if err != nil {
		t.Fatal(err)
	}
	return &translated{Translator: c, names: names}
}

// translate decodes and translates a body.
func (c *translated) translate(body []byte, isCounted bool) error {
	ofSpans, ofResources := c.Names()
	if err := c.request.Decode(body, ofSpans, ofResources); err != nil {
		return err
	}
	return c.Translate(&c.request, isCounted, &c.table)
}

// inWords returns copies of texts, which outlive the table.
type inWords struct{ *spantable.Table }

func (t inWords) String(text spantable.Text) string { return strings.Clone(t.Table.String(text)) }

// sent returns the senders of the last table.
func (c *translated) sent() (all []sent) {
	t := inWords{&c.table}
	for i := range t.Senders {
		s := &t.Senders[i]
		all = append(all, sent{
			Lang:          t.String(s.Lang),
			TracerVersion: t.String(s.TracerVersion),
			Container:     t.String(s.Container),
			Env:           t.String(s.Env),
			Host:          t.String(s.Host),
			Version:       t.String(s.Version),
			Commit:        t.String(s.Commit),
		})
	}
	for i := range t.Groups {
		g, trace := &t.Groups[i], []agentSpan(nil)
		for j := range t.SpansOf(g) {
			trace = append(trace, c.spanOf(&t.SpansOf(g)[j]))
		}
		to := &all[g.Sender]
		to.Traces, to.Origins = append(to.Traces, trace), append(to.Origins, t.String(g.Origin))
	}
	return all
}

func (c *translated) spanOf(s *spantable.Span) agentSpan {
	t := inWords{&c.table}
	words := agentSpan{
		Service:  t.String(s.Service),
		Name:     t.String(s.Name),
		Resource: t.String(s.Resource),
		Type:     t.String(s.Type),
		SpanID:   s.ID, ParentID: s.Parent, Start: s.Start, Elapsed: s.Duration, Kind: s.Kind.String(),
		IsFailed: s.Status == spantable.StatusError,
		Texts:    map[string]string{},
		Numbers:  map[string]float64{},
	}
	for _, tag := range t.TagsOf(s) {
		if name := c.names.Name(tag.Label); tag.Type == spantable.TypeText {
			words.Texts[name] = t.String(tag.Text())
		} else {
			words.Numbers[name] = math.Float64frombits(tag.Bits)
		}
	}
	return words
}

// sentOf returns the senders that resources are translated to.
func sentOf(t testing.TB, c *translated, resources ...otlptest.Resource) []sent {
	t.Helper()
	if err := c.translate(otlptest.Request(resources...), false); err != nil {
		t.Fatal(err)
	}
	return c.sent()
}

// from returns a resource with some spans in one scope.
func from(attributes []otlptest.Attribute, spans ...otlptest.Span) otlptest.Resource {
	return otlptest.Resource{Attributes: attributes, Scopes: [][]otlptest.Span{spans}}
}

// scoped returns a request with one span, whose scope has an attribute.
func scoped(a otlptest.Attribute, s otlptest.Span) []byte {
	scope := otlptest.Field(nil, 1, otlptest.Field(nil, 3, a.Encode()))
	return otlptest.Field(nil, 1, otlptest.Field(nil, 2, otlptest.Field(scope, 2, s.Encode())))
}
