package statustext

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// destinations are where statistics go, what waits, and the books of each but an agent that comes first,
// whose books stand above.
func (t *statusText) destinations() {
	for i := range t.now.Destinations {
		d := &t.now.Destinations[i]
		name, where := "Destination "+sanitize.Text(d.Name), sanitize.Text(d.URL)
		if d.Name == agentName {
			name, where = "Agent", sanitize.Text(t.now.Agent.URL)+" "+sanitize.Text(t.now.Agent.Version)
		}
		state, well := t.destinationState(d)
		t.state(name, where, state, well)
		if (i > 0 || d.Name != agentName) && d.State != export.LookedFor {
			t.line("  %s flushed, %s held, %s unsent  %s", count(d.Books.Flushed), count(d.Books.Held),
				count(d.Books.Unsent), t.warn(nonZeroCounts(d.Books.UnsentBy)))
		}
		if d.Books.BeforeFound > 0 {
			t.line("  %s counted before it was found", count(d.Books.BeforeFound))
		}
		t.waiting(&d.Retry)
	}
}

// doors are those beside the agent's API, in the order of their names.
func (t *statusText) doors() (all []*status.OnwardDoor) {
	for _, name := range slices.Sorted(maps.Keys(t.now.Doors)) {
		if name != "apm" {
			all = append(all, t.now.Doors[name])
		}
	}
	return all
}

// forward is where requests of doors go on to, and what became of them there.
func (t *statusText) forward() {
	for _, d := range t.doors() {
		to := d.Forward
		if to == nil {
			continue
		}
		state, well := forwardState(to)
		t.state(d.Brings+" goes on to", sanitize.Text(to.URL), state, well)
		if requests := nonZeroCounts(d.Forwarded); requests != "" {
			t.line("  requests: %s", requests)
		}
		if to.Said != "" {
			t.line("  %s", t.warn(clip(sanitize.Text(to.Said), 4*shownLabel)))
		}
	}
}

// forwardState is how such a destination does, and whether that is well.
func forwardState(to *status.Forward) (text string, well bool) {
	switch to.State {
	case export.Silent:
		return "does not answer", false
	case export.Answers:
		return "answers, and did not take the last request", false
	}
	return "takes requests", true
}

// forwardTrouble is the same in a sentence, of the first that is not well; "" where all are.
func (t *statusText) forwardTrouble() string {
	for _, d := range t.doors() {
		if d.Forward == nil {
			continue
		}
		if state, well := forwardState(d.Forward); !well {
			return "destination of " + d.Brings + " " + state
		}
	}
	return ""
}

// state is the head of a destination.
func (t *statusText) state(name, where, state string, well bool) {
	if well {
		state = t.good(state)
	} else {
		state = t.bad(state)
	}
	t.line("\n%s  %s  %s", t.bold(name), where, state)
}

func (t *statusText) waiting(r *status.Retry) {
	if r.Payloads > 0 {
		t.line("  %s", t.warn(fmt.Sprintf("%s payloads wait, %s of %s, the oldest for %s of %s",
			count(r.Payloads), bytesText(r.Bytes), bytesText(r.MaxBytes), ago(seconds(r.OldestSeconds)),
			ago(seconds(r.MaxSeconds)))))
	}
}

// trouble says of the first destination that does not do well how it does, "" where all do.
func (t *statusText) trouble() string {
	for i := range t.now.Destinations {
		d := &t.now.Destinations[i]
		if state, well := t.destinationState(d); !well && d.Name == agentName {
			return "agent " + state
		} else if !well {
			return "destination " + sanitize.Text(d.Name) + " " + state
		}
	}
	return ""
}

// mostUnsent is what the destination with the most of them never gets: a span that is
// unsent to two is one span.
func (t *statusText) mostUnsent() uint64 {
	most := t.now.Books.Unsent
	for i := range t.now.Destinations {
		most = max(most, t.now.Destinations[i].Books.Unsent)
	}
	return most
}

// agentName is the agent's among destinations.
const agentName = "agent"

// destinationState is how a destination does, and whether that is well.
func (t *statusText) destinationState(d *status.DestinationStatus) (text string, well bool) {
	switch {
	case d.Scraped != nil && d.Scraped.Last.IsZero():
		return "nobody has scraped it yet", true
	case d.Scraped != nil:
		return "scraped " + ago(t.now.At.Sub(d.Scraped.Last)) + " ago", true
	case d.State == export.LookedFor:
		return "looked for there, not found", true
	case d.State == export.Silent:
		return "does not answer", false
	case d.Name == agentName && !t.now.Agent.Stats:
		return "takes no statistics", false
	case d.State == export.Answers:
		return "answers, and does not take payloads", false
	}
	return "takes payloads", true
}
