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
	Reported  uint64 // reported as lost by daemons, received over HTTP
	Missing   uint64 // spans received over HTTP that are not counted anywhere
	abandoned uint64 // spans abandoned by daemons that shut down gracefully
}

func (v *verdict) add(more verdict) {
	v.Published += more.Published
	v.Lost += more.Lost
	v.Twice += more.Twice
	v.Ambiguous += more.Ambiguous
	v.Died += more.Died
	v.Reported += more.Reported
	v.Missing += more.Missing
}

func (v verdict) passed() bool { return v.Lost == 0 && v.Twice == 0 && v.Reported == v.Missing }

func (v verdict) String() string {
	return fmt.Sprintf("%d published, lost %d, counted twice %d, ambiguous %d, died %d, reported as lost %d of %d",
		v.Published, v.Lost, v.Twice, v.Ambiguous, v.Died, v.Reported, v.Missing)
}

// printfFunc prints a message about a difference.
type printfFunc func(format string, args ...any)

// compare compares the account of a client, and the losses that daemons report for disconnected
// clients, with the spans that a destination counted.
func (a *account) compare(destination string, counted counts, disconnected loss, abandoned uint64, printf printfFunc) (v verdict) {
	missing, duplicated := a.published.against(counted)
	v.Twice = duplicated
	minMissing := a.died + disconnected.lost
	if maxMissing := minMissing + a.ambiguous + a.unsettled + disconnected.ambiguous; missing > maxMissing {
		v.abandoned = min(missing-maxMissing, abandoned)
		v.Lost = missing - maxMissing - v.abandoned
	}
	if minMissing > missing {
		v.Twice += minMissing - missing
	}
	if v.Lost+v.Twice > 0 {
		printf("%s at %s: %d spans are missing, %d counted twice; the client reports %d ambiguous, "+
			"%d died, %d unsettled; for disconnected clients daemons report %d lost, %d ambiguous",
			a.name, destination,
			missing, duplicated, a.ambiguous, a.died, a.unsettled, disconnected.lost, disconnected.ambiguous)
		printf("%s at %s: missing spans: %s", a.name, destination, a.published.missing(counted))
	}
	return v
}

// summarize returns the verdict on the client's account alone.
func (a *account) summarize(printf printfFunc) (v verdict) {
	v.Ambiguous, v.Died, v.Lost = a.ambiguous, a.died, a.lost
	v.Published = a.published.sum()
	if !a.hasLowCapacity {
		v.Lost += a.died
	}
	for _, outcome := range a.invalidOutcomes {
		v.Lost++
		printf("%s: %s", a.name, outcome)
	}
	if v.Lost > 0 {
		printf("%s reports %d spans as daemon_died and %d as lost for other reasons, despite enough capacity",
			a.name, a.died, a.lost)
	}
	return v
}

// against compares sent with counted spans, by name.
func (c counts) against(counted counts) (missing, duplicated uint64) {
	for s, spans := range c {
		missing += max(spans, counted[s]) - counted[s]
		duplicated += max(spans, counted[s]) - spans
	}
	return missing, duplicated
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

// compareReceiver compares the losses that daemons report for an HTTP receiver with the spans that a
// destination did not count, for each life.
func compareReceiver(receiver string, sent []request, losses []loss, counted map[string]counts, printf printfFunc) (v verdict) {
	byLife, groups := map[int]*loss{}, map[int][]request{}
	lossOf := func(life int) *loss {
		if byLife[life] == nil {
			byLife[life] = &loss{life: life, receiver: receiver}
		}
		return byLife[life]
	}
	for _, r := range sent {
		groups[lossOf(r.life).life] = append(groups[r.life], r)
	}
	for _, l := range losses {
		if l.receiver == receiver {
			total := lossOf(l.life)
			total.lost += l.lost
			total.ambiguous += l.ambiguous
		}
	}
	for _, life := range slices.Sorted(maps.Keys(byLife)) {
		v.add(byLife[life].compare(groups[life], counted, printf))
	}
	return v
}

// compare compares a reported loss with the requests that it covers.
func (l *loss) compare(sent []request, counted map[string]counts, printf printfFunc) (v verdict) {
	v.Reported, v.Missing, v.Ambiguous = l.lost, l.lost, l.ambiguous
	for _, destination := range slices.Sorted(maps.Keys(counted)) {
		missing, duplicated, unacked := compareRequests(sent, counted[destination])
		v.Twice += duplicated
		expected := l.expectedLoss(missing, unacked)
		if duplicated > 0 || expected != l.lost {
			printf("receiver %s at %s, life %d: %d acknowledged spans are missing, %d counted twice, "+
				"missing unacknowledged requests %v; the next daemon reports %d lost, %d ambiguous",
				l.receiver, destination, l.life, missing, duplicated, unacked, l.lost, l.ambiguous)
		}
		if distance(expected, l.lost) > distance(v.Missing, l.lost) {
			v.Missing = expected
		}
	}
	return v
}

// maxUnacked limits the unacknowledged requests of a life that are considered: each doubles the
// combinations.
const maxUnacked = 12

// compareRequests compares requests with the spans that a destination counted. An unacknowledged
// request may be missing, even if another destination has counted it: a daemon that is killed while it
// waits for the agent has not responded to its sender. The result unacked contains the span counts of
// missing unacknowledged requests.
func compareRequests(sent []request, counted counts) (missing, duplicated uint64, unacked []uint64) {
	for _, r := range sent {
		got := counted[r.slot]
		duplicated += max(got, r.spans) - r.spans
		shortfall := max(got, r.spans) - got
		switch {
		case r.isAcknowledged:
			missing += shortfall
		case shortfall > 0 && len(unacked) < maxUnacked:
			unacked = append(unacked, shortfall)
		}
	}
	return missing, duplicated, unacked
}

// expectedLoss returns the number of spans that the daemon should have reported as lost. It returns
// l.lost if that number is plausible, given that any subset of the unacknowledged requests (unacked)
// and any number of the spans reported as ambiguous can be missing.
func (l *loss) expectedLoss(missing uint64, unacked []uint64) uint64 {
	if missing >= l.lost && missing <= l.lost+l.ambiguous {
		return l.lost
	}
	if missing > l.lost+l.ambiguous {
		return missing - l.ambiguous
	}
	if len(unacked) == 0 {
		return missing
	}
	for _, extra := range []uint64{0, unacked[0]} {
		if l.expectedLoss(missing+extra, unacked[1:]) == l.lost {
			return l.lost
		}
	}
	return missing
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }
