package clientstats

import (
	"errors"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// maxHits is how many spans a group or a bin may have: far beyond what anybody counts
// in ten seconds, and few enough that a million such can be added up exactly.
const maxHits = 1 << 40

// sketches are the two of a group, which are read when all else of it was.
type sketches struct{ ok, errors msgpack.Text }

func (p *Payload) group() {
	p.must(len(p.Groups) < p.limits.groups)
	p.Groups = append(p.Groups, aggregate.Group{})
	g := &p.Groups[len(p.Groups)-1]
	var encoded sketches
	p.each(func(name string) {
		if !p.label(&g.Key, name) {
			p.counts(g, &encoded, name)
		}
	})
	p.must(g.Spans > 0)
	if p.reader.Failed() {
		return
	}
	g.Mapping = p.readSketch(&g.OK, encoded.ok)
	p.must(g.Mapping == p.readSketch(&g.Errors, encoded.errors))
}

// label reads one of a group's labels. It reports false where the field is none.
func (p *Payload) label(k *span.Key, name string) bool {
	if l, is := span.LabelOfAgent(name); is {
		if l < span.FirstList {
			*k.Text(l) = p.text()
		} else {
			*k.Tags(l) = p.tagList()
		}
		return true
	}
	switch name {
	case "HTTPStatusCode":
		k.HTTPStatus = uint32(p.count(math.MaxUint32))
	case "IsTraceRoot":
		k.TraceRoot = span.TraceRoot(p.count(uint64(span.TraceRootFalse)))
	case "Synthetics":
		k.Synthetics = p.reader.Bool()
	default:
		return false
	}
	return true
}

// counts reads a field of a group that is no label.
func (p *Payload) counts(g *aggregate.Group, encoded *sketches, name string) {
	switch name {
	case "Hits":
		g.Spans = p.count(maxHits)
		g.Hits = float64(g.Spans)
	case "Errors":
		g.Counts.Errors = float64(p.count(maxHits))
	case "TopLevelHits":
		g.TopLevel = float64(p.count(maxHits))
	case "Duration":
		g.Duration = float64(p.count(1 << 53))
	case "OkSummary":
		encoded.ok = p.reader.Bin()
	case "ErrorSummary":
		encoded.errors = p.reader.Bin()
	case "DBType": // it is for the agent's obfuscation, and we have no such label
		p.must(p.reader.Str().Len == 0)
	case "SpanDerivedPrimaryTags":
		p.must(p.reader.Array() == 0)
	default:
		p.unknown()
	}
}

func (p *Payload) tagList() []string {
	first := len(p.tags)
	p.list(func() {
		p.must(len(p.tags) < p.limits.tags)
		p.tags = append(p.tags, p.text())
	})
	return p.tags[first:len(p.tags):len(p.tags)]
}

// readSketch reads one of a group's two, and returns its mapping.
func (p *Payload) readSketch(to *sketch.Bins, encoded msgpack.Text) sketch.Mapping {
	first := len(p.bins)
	s := wholeSketch{bins: p.bins}
	err := s.read(encoded.Of(p.body))
	p.bins = s.bins
	p.must(err == nil && len(p.bins) <= p.limits.bins)
	p.foreign = p.foreign || errors.Is(err, ErrMapping)
	*to = sketch.Bins{Zeros: s.zeros, List: p.bins[first:len(p.bins):len(p.bins)]}
	return s.mapping
}
