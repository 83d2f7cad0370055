package collector

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
)

// checks is the state kept between requests, for checks that windows follow one another.
type checks struct {
	problem     func(format string, args ...any)
	window      [2]uint64 // window of the last request with delta temporality
	temporality uint64    // temporality of the current request
	lives       lives     // series with cumulative temporality
}

// delta and cumulative are values of AggregationTemporality.
const (
	delta      = 1
	cumulative = 2
)

// maxBuckets and maxScale are the defaults of the OpenTelemetry SDK.
const (
	maxBuckets = 160
	maxScale   = 20
)

// maxExemplars limits the exemplars of a histogram per interval, over all of its points, so
// that storing them adds little cost.
const maxExemplars = 2

// request checks one request, and calls count for each of its points, together with the
// previous point of its series if the temporality is cumulative.
func (c *checks) request(r Request, count func(service string, m *Metric, p, before *Point)) {
	resources := map[string]bool{}
	c.temporality = 0
	for i := range r {
		resource := &r[i]
		name := c.identity("a resource", resource.Attributes)
		if resources[name] {
			c.problem("resource %s stands twice in a request", name)
		}
		resources[name] = true
		service, _ := attribute(resource.Attributes, "service.name").(string)
		if service == "" {
			c.problem("resource %s has no service.name", name)
		}
		if len(resource.Scopes) != 1 {
			c.problem("resource %s has %d scopes", name, len(resource.Scopes))
		}
		for j := range resource.Scopes {
			c.scope(name, &resource.Scopes[j],
				func(m *Metric, p, before *Point) { count(service, m, p, before) })
		}
	}
}

func (c *checks) scope(resource string, s *Scope, count func(m *Metric, p, before *Point)) {
	if s.Name == "" {
		c.problem("a scope without a name")
	}
	names := map[string]bool{}
	for i := range s.Metrics {
		m := &s.Metrics[i]
		if m.Name == "" || names[m.Name] {
			c.problem("metric %q has no name, or comes twice in a scope", m.Name)
		}
		names[m.Name] = true
		c.metric(resource, m, count)
	}
}

func (c *checks) metric(resource string, m *Metric, count func(m *Metric, p, before *Point)) {
	if c.temporality == 0 {
		c.temporality = m.Temporality
	}
	if m.Temporality != c.temporality || m.Temporality != delta && m.Temporality != cumulative {
		c.problem("%s has temporality %d, and the metric before it %d", m.Name, m.Temporality, c.temporality)
	}
	if m.IsHistogram && m.Unit != "s" || !m.IsHistogram && !m.IsMonotonic {
		c.problem("%s has unit %q, and is monotonic: %t", m.Name, m.Unit, m.IsMonotonic)
	}
	if len(m.Points) == 0 {
		c.problem("%s has no points", m.Name)
	}
	series := map[string]bool{}
	for i := range m.Points {
		p := &m.Points[i]
		name := c.identity("a point of "+m.Name, p.Attributes)
		if series[name] {
			c.problem("series %s of %s stands twice in a request", name, m.Name)
		}
		series[name] = true
		before := (*Point)(nil)
		if m.Temporality == cumulative {
			if c.lives == nil {
				c.lives = lives{}
			}
			before = c.lives.next(resource+m.Name+name, p, c.problem)
		} else {
			c.follow(p)
		}
		if m.IsHistogram {
			c.histogram(name, p)
		} else if p.Value <= 0 {
			c.problem("series %s counts %d", name, p.Value)
		}
		count(m, p, before)
	}
}

// follow checks that windows neither overlap nor leave gaps: a point has the same window as the
// previous point, or the following one.
func (c *checks) follow(p *Point) {
	now := [2]uint64{p.Start, p.End}
	switch {
	case p.End <= p.Start:
		c.problem("a window from %d to %d", p.Start, p.End)
	case now == c.window:
		return
	case c.window[1] != 0 && p.Start < c.window[1]:
		c.problem("a window begins at %d, and the last ended at %d: they overlap", p.Start, c.window[1])
	case c.window[1] != 0 && p.Start > c.window[1]:
		c.problem("a window begins at %d, and the last ended at %d: there is a gap", p.Start, c.window[1])
	}
	c.window = now
}

// histogram checks that buckets, count and sum agree.
func (c *checks) histogram(name string, p *Point) {
	if n := len(p.Counts); n > maxBuckets || p.Scale > maxScale {
		c.problem("series %s has %d buckets at scale %d", name, n, p.Scale)
	} else if n > 0 && (p.Counts[0] == 0 || p.Counts[n-1] == 0) {
		c.problem("series %s has empty buckets at its ends", name)
	}
	spans, least, most := p.Zeros, 0.0, 0.0
	for i, n := range p.Counts {
		spans += n
		least += float64(n) * p.bound(i)
		most += float64(n) * p.bound(i+1)
	}
	if spans != p.Count || p.Count == 0 {
		c.problem("series %s counts %d, and its buckets %d", name, p.Count, spans)
	}
	if len(p.Exemplars) > maxExemplars {
		c.problem("series %s has %d exemplars", name, len(p.Exemplars))
	}
	for i := range p.Exemplars {
		c.exemplar(name, p, &p.Exemplars[i])
	}
	// Durations are counted with ten significant bits; the others are truncated.
	const truncated, rounded = 1 + 1.0/512, 1e-9
	if math.IsNaN(p.Sum) || p.Sum < least*(1-rounded) ||
		p.Sum > most*truncated*(1+rounded)+float64(p.Zeros)*1e-9 {
		c.problem("series %s has a sum of %v s, and its buckets are from %v to %v", name, p.Sum, least, most)
	}
}

// exemplar checks that the exemplar belongs to the series and window: its bucket is not empty,
// and it has a trace ID.
func (c *checks) exemplar(name string, p *Point, x *Exemplar) {
	if x.Time < p.Start || x.Time > p.End {
		c.problem("series %s has an exemplar at %d, and a window from %d to %d", name, x.Time, p.Start, p.End)
	}
	if len(x.Span) != 8 || len(x.Trace) != 16 || bytes.Count(x.Span, zero) == 8 ||
		bytes.Count(x.Trace, zero) == 16 {
		c.problem("series %s has an exemplar of span %x in trace %x", name, x.Span, x.Trace)
	}
	if x.Value == 0 && p.Zeros > 0 {
		return
	}
	const rounded = 1e-9 // for values at a bound
	for i, n := range p.Counts {
		if n > 0 && x.Value > p.bound(i)*(1-rounded) && x.Value <= p.bound(i+1)*(1+rounded) {
			return
		}
	}
	c.problem("series %s has an exemplar of %v s, which no bucket counts", name, x.Value)
}

var zero = []byte{0}

// bound returns the lower bound of a bucket, in seconds.
func (p *Point) bound(bucket int) float64 {
	return math.Exp2(math.Ldexp(float64(int(p.Offset)+bucket), -int(p.Scale)))
}

// identity formats a list of attributes independently of their order.
func (c *checks) identity(owner string, list []Attribute) string {
	texts, names := make([]string, len(list)), map[string]bool{}
	for i, a := range list {
		texts[i] = fmt.Sprintf("%s=%v", a.Key, a.Value)
		if a.Key == "" || a.Value == nil || names[a.Key] {
			c.problem("%s has attribute %q twice, or without a name or value", owner, a.Key)
		}
		names[a.Key] = true
	}
	slices.Sort(texts)
	return "{" + strings.Join(texts, ", ") + "}"
}

// attribute returns the value of an attribute, or nil.
func attribute(list []Attribute, key string) any {
	for _, a := range list {
		if a.Key == key {
			return a.Value
		}
	}
	return nil
}
