package statustext

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// destinations writes the state, the accounting and the queue of each destination. It omits the accounting of the first
// destination, because accounting writes it.
func (t *statusText) destinations() {
	for i := range t.now.Destinations {
		d := &t.now.Destinations[i]
		where := sanitize.Text(d.URL)
		if d.Name == agentName {
			where = sanitize.Text(t.now.Agent.URL + " " + t.now.Agent.Version)
		}
		state, well := t.destinationState(d)
		t.state("Destination "+sanitize.Text(d.Name), where, state, well)
		if i > 0 && d.State != export.StateDiscovering {
			t.line("  %s flushed, %s pending, %s unsent  %s", count(d.Accounting.Flushed), count(d.Accounting.Pending),
				count(d.Accounting.Unsent), t.warn(nonZeroCounts(d.Accounting.UnsentBy)))
		}
		if d.Accounting.BeforeDiscovery > 0 {
			t.line("  %s spans were counted before it was discovered, and only for the other destinations",
				count(d.Accounting.BeforeDiscovery))
		}
		t.queue(&d.Retry)
	}
}

// receivers returns the names of the HTTP receivers in alphabetical order.
func (t *statusText) receivers() []string { return slices.Sorted(maps.Keys(t.now.Receivers)) }

// upstreams writes the state of each upstream, and the results of the requests forwarded to it.
func (t *statusText) upstreams() {
	for _, name := range t.receivers() {
		d := t.now.Receivers[name]
		upstream := d.Forward
		if upstream == nil {
			continue
		}
		state, well := upstreamState(upstream)
		t.state("Upstream of "+sanitize.Text(d.Data), sanitize.Text(upstream.URL), state, well)
		if requests := nonZeroCounts(d.Forwarded); requests != "" {
			t.line("  forwarded requests: %s", requests)
		}
		if upstream.LastError != "" {
			t.line("  last error: %s", t.warn(clip(sanitize.Text(upstream.LastError), 4*shownLabel)))
		}
	}
}

// upstreamState describes the state of an upstream, and reports whether it is good.
func upstreamState(upstream *status.Forward) (text string, well bool) {
	switch upstream.State {
	case export.StateUnreachable:
		return "does not respond", false
	case export.StateRejecting:
		return "rejected the last request", false
	}
	return "accepts requests", true
}

// upstreamTrouble describes the first upstream in a bad state, or returns "".
func (t *statusText) upstreamTrouble() string {
	for _, name := range t.receivers() {
		d := t.now.Receivers[name]
		if d.Forward == nil {
			continue
		}
		if state, well := upstreamState(d.Forward); !well {
			return "the upstream of " + sanitize.Text(d.Data) + " " + state
		}
	}
	return ""
}

// state writes the header of a destination or an upstream.
func (t *statusText) state(name, where, state string, well bool) {
	if well {
		state = t.good(state)
	} else {
		state = t.bad(state)
	}
	t.line("\n%s  %s  %s", t.bold(name), strings.TrimSpace(where), state)
}

// queue writes the usage of a destination's retry queue, unless the queue is empty.
func (t *statusText) queue(r *status.Retry) {
	if r.Payloads > 0 {
		t.line("  %s", t.warn(fmt.Sprintf("%s payloads are queued: %s of %s; the oldest for %s, dropped after %s",
			count(r.Payloads), bytesText(r.Bytes), bytesText(r.MaxBytes), ago(seconds(r.OldestSeconds)),
			ago(seconds(r.MaxSeconds)))))
	}
}

// trouble describes the first destination in a bad state, or returns "".
func (t *statusText) trouble() string {
	for i := range t.now.Destinations {
		d := &t.now.Destinations[i]
		if state, well := t.destinationState(d); !well && d.Name == agentName {
			return "the agent " + state
		} else if !well {
			return "the destination " + sanitize.Text(d.Name) + " " + state
		}
	}
	return ""
}

// mostUnsent returns the largest number of unsent spans of a destination, because a span that is
// unsent at two destinations is one span.
func (t *statusText) mostUnsent() uint64 {
	most := t.now.Accounting.Unsent
	for i := range t.now.Destinations {
		most = max(most, t.now.Destinations[i].Accounting.Unsent)
	}
	return most
}

// agentName is the name of the agent among the destinations.
const agentName = "agent"

// destinationState describes the state of a destination, and reports whether it is good.
func (t *statusText) destinationState(d *status.DestinationStatus) (text string, well bool) {
	switch {
	case d.Scraped != nil && d.Scraped.Last.IsZero():
		return "not scraped yet", true
	case d.Scraped != nil:
		return "last scrape " + ago(t.now.At.Sub(d.Scraped.Last)) + " ago", true
	case d.State == export.StateDiscovering:
		return "not discovered yet", true
	case d.State == export.StateUnreachable:
		return "does not respond", false
	case d.Name == agentName && !t.now.Agent.Stats:
		return "does not accept statistics", false
	case d.State == export.StateRejecting:
		return "responds, but does not accept payloads", false
	}
	return "accepts payloads", true
}
