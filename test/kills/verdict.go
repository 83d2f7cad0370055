package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// verdict is what the books of all sides come to, in spans.
type verdict struct {
	Published uint64 // by clients
	Lost      uint64 // neither counted nor named
	Twice     uint64 // counted beyond what was sent, or counted and named as lost
	Ambiguous uint64 // named so
	Died      uint64 // named so, by clients that could not keep all
	Named     uint64 // by daemons, of what came by HTTP doors, as lost
	Missing   uint64 // of that, nowhere counted
	gaveUp    uint64 // what daemons that ended in order name
}

func (v *verdict) add(more verdict) {
	v.Published += more.Published
	v.Lost += more.Lost
	v.Twice += more.Twice
	v.Ambiguous += more.Ambiguous
	v.Died += more.Died
	v.Named += more.Named
	v.Missing += more.Missing
}

func (v verdict) isGood() bool { return v.Lost == 0 && v.Twice == 0 && v.Named == v.Missing }

func (v verdict) String() string {
	return fmt.Sprintf("%d published, lost %d, twice %d, ambiguous %d, died %d, counted as lost %d of %d",
		v.Published, v.Lost, v.Twice, v.Ambiguous, v.Died, v.Named, v.Missing)
}

type say func(format string, args ...any)

// judge holds what a client says, and daemons of those that had left, against what a destination counted.
func (a *account) judge(destination string, counted counts, left loss, gaveUp uint64, say say) (v verdict) {
	missing, doubled := a.published.against(counted)
	v.Twice = doubled
	least := a.died + left.lost
	if most := least + a.ambiguous + a.unsettled + left.ambiguous; missing > most {
		v.gaveUp = min(missing-most, gaveUp)
		v.Lost = missing - most - v.gaveUp
	}
	if least > missing {
		v.Twice += least - missing
	}
	if v.Lost+v.Twice > 0 {
		say("%s at %s: %d are missing and %d counted beyond what was published; it names %d ambiguous, "+
			"%d died, %d not known when it left; daemons name %d lost, %d ambiguous of who had left",
			a.name, destination,
			missing, doubled, a.ambiguous, a.died, a.unsettled, left.lost, left.ambiguous)
		say("missing of %s at %s: %s", a.name, destination, a.published.missing(counted))
	}
	return v
}

// own is what the books of the client alone come to.
func (a *account) own(say say) (v verdict) {
	v.Ambiguous, v.Died, v.Lost = a.ambiguous, a.died, a.lost
	v.Published = a.published.sum()
	if !a.isTight {
		v.Lost += a.died
	}
	for _, wrong := range a.wrong {
		v.Lost++
		say("%s: %s", a.name, wrong)
	}
	if v.Lost > 0 {
		say("%s had room for all that it kept, and says that %d died with a daemon and %d were lost "+
			"otherwise",
			a.name, a.died, a.lost)
	}
	return v
}

// against compares what was sent with what was counted, name by name.
func (c counts) against(counted counts) (missing, doubled uint64) {
	for s, spans := range c {
		missing += max(spans, counted[s]) - counted[s]
		doubled += max(spans, counted[s]) - spans
	}
	return missing, doubled
}

// missing lists what is missing by name.
func (c counts) missing(counted counts) string {
	var all []string
	for s, spans := range c {
		if counted[s] < spans {
			all = append(all, fmt.Sprintf("%s: %d of %d", s.name, spans-counted[s], spans))
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	if len(all) > 20 {
		all = append(all[:20], fmt.Sprintf("%d more", len(all)-20))
	}
	return strings.Join(all, ", ")
}

// judgeDoor holds what daemons say that was lost at a door against what no destination counted, for each
// daemon that says so: it speaks of those since the one that spoke before it.
func judgeDoor(door string, sent []request, losses []loss, counted map[string]counts, say say) (v verdict) {
	losses = append(slices.Clone(losses), loss{life: 1 << 30, door: door}) // nobody speaks of the last ones
	from := 0
	for _, l := range losses {
		if l.door != door {
			continue
		}
		var group []request
		for _, r := range sent {
			if r.life >= from && r.life < l.life {
				group = append(group, r)
			}
		}
		v.add(l.judge(group, counted, say))
		from = l.life
	}
	return v
}

// judge holds one loss against the requests that it speaks of.
func (l *loss) judge(sent []request, counted map[string]counts, say say) (v verdict) {
	v.Named, v.Missing, v.Ambiguous = l.lost, l.lost, l.ambiguous
	for _, destination := range slices.Sorted(maps.Keys(counted)) {
		missing, doubled, open := compare(sent, counted[destination])
		v.Twice += doubled
		owed := l.owed(missing, open)
		if doubled > 0 || owed != l.lost {
			say("door %s at %s, said by life %d: %d answered are missing, %d counted beyond what was sent, "+
				"not "+
				"answered %v; it names %d lost, %d ambiguous",
				l.door, destination, l.life, missing, doubled, open, l.lost, l.ambiguous)
		}
		if distance(owed, l.lost) > distance(v.Missing, l.lost) {
			v.Missing = owed
		}
	}
	return v
}

// mostOpen is more requests than are under way in a life: each of them doubles what may be.
const mostOpen = 12

// compare compares requests with what a destination counted. Of one that was not answered nobody knows, also
// where another destination has it: a daemon that was killed while it waited for the agent to answer had not
// told its sender. Open has the spans of those that are missing.
func compare(sent []request, counted counts) (missing, doubled uint64, open []uint64) {
	for _, r := range sent {
		got := counted[r.slot]
		doubled += max(got, r.spans) - r.spans
		less := max(got, r.spans) - got
		switch {
		case r.isAnswered:
			missing += less
		case less > 0 && len(open) < mostOpen:
			open = append(open, less)
		}
	}
	return missing, doubled, open
}

// owed is how much a daemon should have named: what it did, where that can be. It can with any of the
// open requests, and with anything of what it calls ambiguous.
func (l *loss) owed(missing uint64, open []uint64) uint64 {
	if missing >= l.lost && missing <= l.lost+l.ambiguous {
		return l.lost
	}
	if missing > l.lost+l.ambiguous {
		return missing - l.ambiguous
	}
	if len(open) == 0 {
		return missing
	}
	for _, with := range []uint64{0, open[0]} {
		if l.owed(missing+with, open[1:]) == l.lost {
			return l.lost
		}
	}
	return missing
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }
