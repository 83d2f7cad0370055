package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// verdict is the result of an episode's accounting, in spans.
type verdict struct {
	Published uint64 // published by clients
	Lost      uint64 // neither counted nor reported
	Twice     uint64 // counted more often than sent, or counted and reported as lost
	Ambiguous uint64 // reported as ambiguous
	Died      uint64 // reported as daemon_died by clients that could not keep all spans
	Named     uint64 // reported as lost by daemons, received over HTTP
	Missing   uint64 // spans received over HTTP that are not counted anywhere
	gaveUp    uint64 // spans given up by daemons that shut down gracefully
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

// judge compares the account of a client, and the losses that daemons report for clients that had left,
// with the spans that a destination counted.
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

// own returns the verdict on the client's account alone.
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

// against compares sent with counted spans, by name.
func (c counts) against(counted counts) (missing, doubled uint64) {
	for s, spans := range c {
		missing += max(spans, counted[s]) - counted[s]
		doubled += max(spans, counted[s]) - spans
	}
	return missing, doubled
}

// missing lists the missing spans by name.
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

// judgeDoor compares the losses that daemons report for an HTTP receiver with the spans that a
// destination did not count, for each life.
func judgeDoor(door string, sent []request, losses []loss, counted map[string]counts, say say) (v verdict) {
	byLife, groups := map[int]*loss{}, map[int][]request{}
	of := func(life int) *loss {
		if byLife[life] == nil {
			byLife[life] = &loss{life: life, door: door}
		}
		return byLife[life]
	}
	for _, r := range sent {
		groups[of(r.life).life] = append(groups[r.life], r)
	}
	for _, l := range losses {
		if l.door == door {
			all := of(l.life)
			all.lost += l.lost
			all.ambiguous += l.ambiguous
		}
	}
	for _, life := range slices.Sorted(maps.Keys(byLife)) {
		v.add(byLife[life].judge(groups[life], counted, say))
	}
	return v
}

// judge compares a reported loss with the requests that it covers.
func (l *loss) judge(sent []request, counted map[string]counts, say say) (v verdict) {
	v.Named, v.Missing, v.Ambiguous = l.lost, l.lost, l.ambiguous
	for _, destination := range slices.Sorted(maps.Keys(counted)) {
		missing, doubled, open := compare(sent, counted[destination])
		v.Twice += doubled
		owed := l.owed(missing, open)
		if doubled > 0 || owed != l.lost {
			say("door %s at %s, life %d: %d answered are missing, %d counted beyond what was sent, "+
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

// mostOpen limits the unacknowledged requests of a life that are considered: each doubles the
// combinations.
const mostOpen = 12

// compare compares requests with the spans that a destination counted. An unacknowledged request may be
// missing, even if another destination has counted it: a daemon that is killed while it waits for the
// agent has not responded to its sender. The result open contains the span counts of missing
// unacknowledged requests.
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

// owed returns the number of spans that the daemon should have reported as lost. It returns l.lost if
// that number is plausible, given that any subset of the unacknowledged requests (open) and any number
// of the spans reported as ambiguous can be missing.
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
