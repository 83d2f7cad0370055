package apm

import (
	"cmp"
	"net/http"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// groups is what a tracer that computes its own statistics sends: the one payload
// of a request, read in place. Its memory is used again for the next; one goroutine
// at a time uses it. Labels are parts of the body.
type groups struct {
	reader
	all     []aggregate.Group
	texts   []string        // of their tags
	bins    []aggregate.Bin // of their sketches
	sketch  sketchReader
	start   uint64 // of the bucket that is being read
	width   uint64 // of all buckets
	origin  span.Origin
	unfit   bool // it is what a tracer may send, and can't be merged
	foreign bool // because of a mapping that the agent does not know
	most    mostGroups
}

// kept is the reader for the next payload, without what only a very large one
// needed.
func (g *groups) kept() *groups {
	if cap(g.bins) > keptTags || cap(g.all) > maxGroups/4 || cap(g.texts) > keptTags {
		return &groups{}
	}
	return g
}

// read reads a payload. After it, merging is possible if it reports nothing.
func (g *groups) read(body []byte, h http.Header) (result StatsResult, ok bool) {
	clear(g.all)
	clear(g.texts)
	*g = groups{
		reader: reader{b: body}, all: g.all[:0], texts: g.texts[:0], bins: g.bins[:0],
		sketch: g.sketch.next(), most: mostGroupsOf(len(body)),
	}
	g.headers(h)
	g.payload()
	g.must(len(g.all) > 0) // a probe is the agent's to answer
	switch {
	case g.foreign:
		return StatsMapping, false
	case g.unfit:
		return StatsUnfit, false
	case g.bad:
		return StatsUnread, false
	}
	return 0, true
}

// each visits the fields of a map by name.
func (g *groups) each(visit func(name []byte)) {
	for n := g.mapping(); n > 0 && !g.bad; n-- {
		visit(g.bytesOf(g.str()))
	}
}

func (g *groups) bytesOf(t text) []byte { return g.b[t.at : t.at+t.n] }

func (g *groups) label() string { return view(g.bytesOf(g.str())) }

// own is a string that outlives the body.
func (g *groups) own() string { return string(g.bytesOf(g.str())) }

// must holds of every payload that can be merged. Where it does not, nothing more is
// read.
func (g *groups) must(is bool) {
	if !is && !g.bad {
		g.unfit = true
		g.fail()
	}
}

// maxGroups and maxTexts bound what one body may make us hold of it, 8 and 4 MB:
// several times what a tracer counts in ten seconds. A shorter one may less.
const (
	maxGroups = 1 << 14
	maxTexts  = 1 << 18
)

func (g *groups) payload() {
	o := &g.origin
	g.each(func(name []byte) {
		switch string(name) {
		case "Hostname":
			o.Host = g.own()
		case "Env":
			o.Env = g.own()
		case "Version":
			o.Version = g.own()
		case "Service":
			o.Service = g.own()
		case "Lang":
			o.Lang = cmp.Or(g.own(), o.Lang)
		case "TracerVersion":
			o.TracerVersion = cmp.Or(g.own(), o.TracerVersion)
		case "RuntimeID":
			o.RuntimeID = g.own()
		case "GitCommitSha":
			o.GitCommitSHA = g.own()
		case "ProcessTags":
			o.ProcessTags = g.own()
		case "Stats":
			for n := g.array(); n > 0 && !g.bad; n-- {
				g.bucket()
			}
		case "Sequence", "ProcessTagsHash":
			g.unsigned() // the agent makes nothing of it
		case "ContainerID":
			g.str() // the same
		case "AgentAggregation", "ImageTag":
			g.must(g.str().n == 0)
		case "Tags":
			g.must(g.array() == 0)
		default:
			g.must(false)
			g.skip()
		}
	})
}

func (g *groups) bucket() {
	first := len(g.all)
	g.each(func(name []byte) {
		switch string(name) {
		case "Start":
			g.start = g.unsigned()
		case "Duration":
			width := g.unsigned()
			g.must(g.width == 0 || g.width == width)
			g.width = width
		case "Stats":
			for n := g.array(); n > 0 && !g.bad; n-- {
				g.group()
			}
		case "AgentTimeShift":
			g.must(g.signed() == 0)
		default:
			g.must(false)
			g.skip()
		}
	})
	for i := range g.all[first:] {
		g.all[first+i].Bucket = int64(g.start)
	}
	g.must(g.start < 1<<62)
	g.start = 0
}

func (g *groups) group() {
	g.must(len(g.all) < g.most.groups)
	g.all = append(g.all, aggregate.Group{})
	a := &g.all[len(g.all)-1]
	var fine, failed text
	g.each(func(name []byte) { g.field(a, name, &fine, &failed) })
	g.must(a.Spans > 0)
	if g.bad {
		return
	}
	g.sketchOf(&a.OK, fine)
	a.Mapping = g.sketch.mapping
	g.sketchOf(&a.Errors, failed)
	g.must(a.Mapping == g.sketch.mapping)
}

// field reads one of a group's, by the names of the agent's type.
func (g *groups) field(a *aggregate.Group, name []byte, fine, failed *text) {
	k := &a.Key
	switch string(name) {
	case "Service":
		k.Service = g.label()
	case "Name":
		k.Operation = g.label()
	case "Resource":
		k.Resource = g.label()
	case "Type":
		k.Type = g.label()
	case "SpanKind":
		k.Kind = g.label()
	case "HTTPMethod":
		k.HTTPMethod = g.label()
	case "HTTPEndpoint":
		k.HTTPEndpoint = g.label()
	case "GRPCStatusCode":
		k.GRPCStatus = g.label()
	case "srv_src":
		k.ServiceSource = g.label()
	case "HTTPStatusCode":
		k.HTTPStatus = uint32(g.atMost(1<<32 - 1))
	case "IsTraceRoot":
		k.TraceRoot = span.TraceRoot(g.atMost(uint64(span.TraceRootFalse)))
	case "Synthetics":
		k.Synthetics = g.boolean()
	case "PeerTags":
		k.PeerTags = g.list()
	case "AdditionalMetricTags":
		k.AdditionalTags = g.list()
	case "Hits":
		a.Spans = g.atMost(maxHits)
		a.Hits = float64(a.Spans)
	case "Errors":
		a.Counts.Errors = float64(g.atMost(maxHits))
	case "TopLevelHits":
		a.TopLevel = float64(g.atMost(maxHits))
	case "Duration":
		a.Duration = float64(g.atMost(1 << 53))
	case "OkSummary":
		*fine = g.bin()
	case "ErrorSummary":
		*failed = g.bin()
	case "DBType":
		g.must(g.str().n == 0) // it is for the agent's obfuscation, and we have no such label
	case "SpanDerivedPrimaryTags":
		g.must(g.array() == 0)
	default:
		g.must(false)
		g.skip()
	}
}

// atMost reads a number. One that is larger can't be added up exactly.
func (g *groups) atMost(most uint64) uint64 {
	n := g.unsigned()
	g.must(n <= most)
	return min(n, most)
}

func (g *groups) list() []string {
	first := len(g.texts)
	for n := g.array(); n > 0 && !g.bad; n-- {
		g.must(len(g.texts) < g.most.texts)
		g.texts = append(g.texts, g.label())
	}
	return g.texts[first:len(g.texts):len(g.texts)]
}

func (g *groups) sketchOf(to *aggregate.Bins, encoded text) {
	var ok bool
	*to, g.bins, ok = g.sketch.read(g.bytesOf(encoded), g.bins)
	g.foreign = g.foreign || g.sketch.foreign
	g.must(ok && len(g.bins) <= g.most.bins)
}

// headers are what the request says of the origin. What its payload says of the same
// comes after it and goes before it.
func (g *groups) headers(h http.Header) {
	o := &g.origin
	o.Lang, o.TracerVersion = h.Get(headerLang), h.Get(headerTracerVersion)
	o.LangVersion, o.LangInterpreter = h.Get(headerLangVersion), h.Get(headerInterpreter)
	o.ContainerID, o.EntityID, o.ExternalEnv = h.Get(headerContainer), h.Get(headerEntity), h.Get(headerExternalEnv)
	o.ObfuscationVersion = h.Get(headerObfuscation)
}
