package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// mostBuckets is how many a histogram has at most, here and in deltatocumulative.
const mostBuckets = 160

// account is what became of all spans, in their number.
type account struct {
	counted  uint64 // by the oracle
	kept     uint64 // by Prometheus
	held     uint64 // accepted by a gateway that was killed, and gone with it
	doubled  uint64 // handed on by one that was killed before it answered, and sent again
	series   int
	repeated int // points that came a second time and were left out
}

func (a account) String() string {
	return fmt.Sprintf("of %d spans in %d series Prometheus has %d; %d a killed gateway had accepted and "+
		"held, %d it had handed on and not answered; %d points came twice and were left out",
		a.counted, a.series, a.kept, a.held, a.doubled, a.repeated)
}

// account follows all spans through the tiers, once nothing is under way any more. Every
// difference but those that it names is an error.
//
//	oracle  = sum over gateways of what they accepted       every series, every bucket
//	gateway = what Prometheus has under the gateway's name  every series, every bucket
//
// Of a killed gateway Prometheus has what it had accepted up to some point between two
// deltas of a series; the rest was held. Or it has a delta more, which was handed on and never answered.
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

// compare holds what the gateways accepted, all together, against the oracle.
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

// accepted is all that the gateway answered for.
func (s *stream) accepted() *distribution {
	if n := len(s.sums); n > 0 {
		return s.sums[n-1]
	}
	return newDistribution()
}

// held compares what a gateway had accepted of a stream with what Prometheus has: it returns what
// is missing and what is there beyond, and what is wrong where neither a death between two deltas
// nor one between a delta and its answer explains the difference.
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

// streams are those of one metric, by their series.
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

// of is what Prometheus has of a metric under a gateway's name, by series.
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

// fitting is the finest scale, of those not finer than the distribution's, at which it
// has no more buckets than that.
func (d *distribution) fitting(most int) int {
	for scale := d.scale; ; scale-- {
		indexes := slices.Collect(maps.Keys(d.at(scale).buckets))
		if len(indexes) == 0 || slices.Max(indexes)-slices.Min(indexes) < most {
			return scale
		}
	}
}
