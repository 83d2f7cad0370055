package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// mostBuckets is the maximum number of buckets of a histogram, in the daemon and in deltatocumulative.
const mostBuckets = 160

// account is the outcome of all spans, in numbers of spans.
type account struct {
	counted  uint64 // counted by the oracle
	kept     uint64 // stored in Prometheus
	held     uint64 // accepted by a gateway and lost when it was killed
	doubled  uint64 // forwarded by a gateway that was killed before it responded, and therefore retried
	series   int
	repeated int // duplicate points, discarded by a gateway
}

func (a account) String() string {
	return fmt.Sprintf("of %d spans in %d series Prometheus has %d; %d a killed gateway had accepted and "+
		"held, %d it had handed on and not answered; %d points came twice and were left out",
		a.counted, a.series, a.kept, a.held, a.doubled, a.repeated)
}

// account follows all spans through the tiers once nothing is in flight. Every difference that is not
// explained by one of the fields of account is an error.
//
//	oracle  = sum over gateways of what they accepted       every series, every bucket
//	gateway = what Prometheus has under the gateway's name  every series, every bucket
//
// For a killed gateway, Prometheus has the spans accepted up to some delta of a series; the gateway
// held the rest. Alternatively Prometheus has one more delta, which the gateway forwarded but never
// acknowledged.
func (f *tiers) account(t *testing.T, want map[string]*distribution) (a account) {
	t.Helper()
	a.series = len(want)
	for _, metric := range []string{durations, calls} {
		accepted := map[string]*distribution{}
		for _, g := range f.gateways {
			has := f.prometheus.of(metric, g.name)
			for name, s := range g.streams(metric) {
				if len(s.sums) > 0 {
					adding(accepted, name, s.accepted())
				}
				held, doubled, wrong := s.held(has[name], g.isKilled)
				if wrong != "" {
					t.Errorf("%s, %s of %s: %s", g.name, metric, name, wrong)
				}
				if s.overlaps > 0 {
					t.Errorf("%s, %s of %s: %d windows began before the last one had ended", g.name, metric,
						name, s.overlaps)
				}
				if metric == durations {
					a.held, a.doubled = a.held+held, a.doubled+doubled
				}
			}
			if metric == durations {
				a.repeated += g.repeated
				for _, d := range has {
					a.kept += d.count
				}
			}
		}
		compare(t, metric, accepted, want)
	}
	for _, d := range want {
		a.counted += d.count
	}
	if a.kept+a.held != a.counted+a.doubled {
		t.Errorf("Prometheus has %d spans, and %d were held: that is not the %d that there were and %d "+
			"that came twice", a.kept, a.held, a.counted, a.doubled)
	}
	t.Log(a)
	return a
}

// adding adds a distribution to that of a series.
func adding(to map[string]*distribution, series string, d *distribution) {
	if to[series] == nil {
		to[series] = newDistribution()
	}
	to[series].add(d)
}

// compare compares the sum of the accepted spans of all gateways with the oracle.
func compare(t *testing.T, metric string, accepted, want map[string]*distribution) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch got := accepted[name]; {
		case got == nil:
			t.Errorf("%s: no gateway was given %s", metric, name)
		case metric == calls && got.count != want[name].count:
			t.Errorf("%s of %s: the gateways were given %d, the oracle counted %d", metric, name, got.count,
				want[name].count)
		case metric == durations:
			if differs := got.differs(want[name]); differs != "" {
				t.Errorf("%s of %s: the gateways were given, and the oracle counted: %s", metric, name,
					differs)
			}
			if fits := want[name].fitting(mostBuckets); got.scale < fits {
				t.Errorf("%s of %s: scale %d, though %d fits", metric, name, got.scale, fits)
			}
		}
	}
	if len(accepted) != len(want) {
		t.Errorf("%s: the gateways were given %d series, the oracle counted %d", metric, len(accepted),
			len(want))
	}
}

// accepted returns everything that the gateway has acknowledged.
func (s *stream) accepted() *distribution {
	if n := len(s.sums); n > 0 {
		return s.sums[n-1]
	}
	return newDistribution()
}

// held compares the acknowledged deltas of a stream with the data in Prometheus. It returns the number
// of missing spans and of surplus spans. If neither a crash between two deltas nor a crash between a
// delta and its response explains the difference, wrong describes the problem.
func (s *stream) held(has *distribution, isKilled bool) (held, doubled uint64, wrong string) {
	if has == nil {
		has = newDistribution()
	}
	all := s.accepted()
	wrong = all.differs(has)
	if wrong == "" || !isKilled {
		return 0, 0, wrong
	}
	for _, sum := range append(s.sums, newDistribution()) {
		if sum.differs(has) == "" {
			return all.count - sum.count, 0, ""
		}
	}
	for _, delta := range s.unanswered {
		more := newDistribution()
		more.add(all)
		if more.add(delta); more.differs(has) == "" {
			return 0, delta.count, ""
		}
	}
	return 0, 0, "what Prometheus has is no beginning of what it accepted: " + wrong
}

// streams returns the streams of one metric, by series.
func (p *tap) streams(metric string) map[string]*stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := map[string]*stream{}
	for name, s := range p.answered {
		if series, is := strings.CutPrefix(name, metric+" "); is {
			of[series] = s
		}
	}
	return of
}

// of returns the distributions of a metric that Prometheus has under a gateway's name, by series.
func (p *prometheus) of(metric, gateway string) map[string]*distribution {
	p.t.Helper()
	has := map[string]*distribution{}
	for _, s := range p.ask(fmt.Sprintf("sum by (%s) (%s{gateway=%q})", strings.Join(identity, ", "),
		prometheusNames[metric], gateway)) {
		if s.histogram == nil {
			s.histogram = newDistribution()
			s.histogram.count = uint64(s.value)
		}
		has[series(s.labels)] = s.histogram
	}
	return has
}

// fitting returns the finest scale, not finer than d's, at which d has at most the given number of
// buckets.
func (d *distribution) fitting(most int) int {
	for scale := d.scale; ; scale-- {
		indexes := slices.Collect(maps.Keys(d.at(scale).buckets))
		if len(indexes) == 0 || slices.Max(indexes)-slices.Min(indexes) < most {
			return scale
		}
	}
}
