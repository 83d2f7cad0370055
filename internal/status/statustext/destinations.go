package statustext

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// destinations writes the state, the accounting and the queue of each destination. The accounting of an agent that is the
// first destination is omitted, because books writes it.
func (t *statusText) destinations() {
	for i := range t.now.Destinations {
		d := &t.now.Destinations[i]
		name, where := "Destination "+sanitize.Text(d.Name), sanitize.Text(d.URL)
		if d.Name == agentName {
			name, where = "Agent", sanitize.Text(t.now.Agent.URL)+" "+sanitize.Text(t.now.Agent.Version)
		}
		state, well := t.destinationState(d)
		t.state(name, where, state, well)
		if (i > 0 || d.Name != agentName) && d.State != export.StateDiscovering {
			t.line("  %s flushed, %s held, %s unsent  %s", count(d.Books.Flushed), count(d.Books.Held),
				count(d.Books.Unsent), t.warn(nonZeroCounts(d.Books.UnsentBy)))
		}
		if d.Books.BeforeFound > 0 {
			t.line("  %s counted before it was found", count(d.Books.BeforeFound))
		}
		t.waiting(&d.Retry)
	}
}

// receivers returns the receivers except for the Datadog one, sorted by name.
func (t *statusText) receivers() (all []*status.ForwardingReceiver) {
	for _, name := range slices.Sorted(maps.Keys(t.now.Receivers)) {
		if name != "apm" {
			all = append(all, t.now.Receivers[name])
		}
	}
	return all
}

// forward writes the state of each upstream, and the results of the requests forwarded to it.
func (t *statusText) forward() {
	for _, d := range t.receivers() {
		upstream := d.Forward
		if upstream == nil {
			continue
		}
		state, well := forwardState(upstream)
		t.state(d.Receives+" goes on to", sanitize.Text(upstream.URL), state, well)
		if requests := nonZeroCounts(d.Forwarded); requests != "" {
			t.line("  requests: %s", requests)
		}
		if upstream.Said != "" {
			t.line("  %s", t.warn(clip(sanitize.Text(upstream.Said), 4*shownLabel)))
		}
	}
}

// forwardState describes the state of an upstream, and reports whether it is good.
func forwardState(upstream *status.Forward) (text string, well bool) {
	switch upstream.State {
	case export.StateSilent:
		return "does not answer", false
	case export.StateRejecting:
		return "answers, and did not take the last request", false
	}
	return "takes requests", true
}

// forwardTrouble describes the first upstream in a bad state, or returns "".
func (t *statusText) forwardTrouble() string {
	for _, d := range t.receivers() {
		if d.Forward == nil {
			continue
		}
		if state, well := forwardState(d.Forward); !well {
			return "destination of " + d.Receives + " " + state
		}
	}
	return ""
}

// state writes the header of a destination.
func (t *statusText) state(name, where, state string, well bool) {
	if well {
		state = t.good(state)
	} else {
		state = t.bad(state)
	}
	t.line("\n%s  %s  %s", t.bold(name), where, state)
}

// waiting writes the usage of a destination's retry queue, unless the queue is empty.
func (t *statusText) waiting(r *status.Retry) {
	if r.Payloads > 0 {
		t.line("  %s", t.warn(fmt.Sprintf("%s payloads wait, %s of %s, the oldest for %s of %s",
			count(r.Payloads), bytesText(r.Bytes), bytesText(r.MaxBytes), ago(seconds(r.OldestSeconds)),
			ago(seconds(r.MaxSeconds)))))
	}
}

// trouble describes the first destination in a bad state, or returns "".
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

// mostUnsent returns the largest number of unsent spans of a destination, because a span that is
// unsent at two destinations is one span.
func (t *statusText) mostUnsent() uint64 {
	most := t.now.Books.Unsent
	for i := range t.now.Destinations {
		most = max(most, t.now.Destinations[i].Books.Unsent)
	}
	return most
}

// agentName is the name of the agent among the destinations.
const agentName = "agent"

// destinationState describes the state of a destination, and reports whether it is good.
func (t *statusText) destinationState(d *status.DestinationStatus) (text string, well bool) {
	switch {
	case d.Scraped != nil && d.Scraped.Last.IsZero():
		return "nobody has scraped it yet", true
	case d.Scraped != nil:
		return "scraped " + ago(t.now.At.Sub(d.Scraped.Last)) + " ago", true
	case d.State == export.StateDiscovering:
		return "looked for there, not found", true
	case d.State == export.StateSilent:
		return "does not answer", false
	case d.Name == agentName && !t.now.Agent.Stats:
		return "takes no statistics", false
	case d.State == export.StateRejecting:
		return "answers, and does not take payloads", false
	}
	return "takes payloads", true
}
