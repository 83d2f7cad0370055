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

// writeDestinations writes the state, the counts of spans and the queue of each destination. It omits the
// counts of the first destination, because the section "Accounting" contains them.
func (t *statusText) writeDestinations() {
	for i := range t.current.Destinations {
		d := &t.current.Destinations[i]
		state, isGood := t.destinationState(d)
		t.writeHeader("Destination "+sanitize.Text(d.Name), t.location(d), state, isGood)
		isFirst := i == 0
		if !isFirst {
			t.writeSpanCounts(d)
		}
		if d.Accounting.BeforeDiscovery > 0 {
			t.line("  %s spans were counted before it was discovered, and only for the other destinations",
				count(d.Accounting.BeforeDiscovery))
		}
		t.writeQueue(&d.Retry)
	}
}

// writeSpanCounts writes how many spans a destination has received, and how many are pending or could not
// be sent. It writes nothing if the destination has not been discovered yet.
func (t *statusText) writeSpanCounts(d *status.DestinationStatus) {
	if d.State == export.StateDiscovering {
		return
	}
	spans := &d.Accounting
	t.line("  %s flushed, %s pending, %s unsent  %s", count(spans.Flushed), count(spans.Pending),
		count(spans.Unsent), t.warn(nonZeroCounts(spans.UnsentBy)))
}

// location returns the URL of a destination. For the Datadog agent, it also returns the version.
func (t *statusText) location(d *status.DestinationStatus) string {
	if d.Name == agentName {
		return sanitize.Text(t.current.Agent.URL + " " + t.current.Agent.Version)
	}
	return sanitize.Text(d.URL)
}

// receivers returns the names of the HTTP receivers in alphabetical order.
func (t *statusText) receivers() []string { return slices.Sorted(maps.Keys(t.current.Receivers)) }

// writeUpstreams writes the state of each upstream, and the results of the requests forwarded to it.
func (t *statusText) writeUpstreams() {
	for _, name := range t.receivers() {
		receiver := t.current.Receivers[name]
		upstream := receiver.Forward
		if upstream == nil {
			continue
		}
		state, isGood := upstreamState(upstream)
		t.writeHeader("Upstream of "+sanitize.Text(receiver.Protocol), sanitize.Text(upstream.URL), state, isGood)
		if requests := nonZeroCounts(receiver.Forwarded); requests != "" {
			t.line("  forwarded requests: %s", requests)
		}
		if upstream.LastError != "" {
			t.line("  last error: %s", t.warn(clip(sanitize.Text(upstream.LastError), 4*shownLabel)))
		}
	}
}

// upstreamState describes the state of an upstream, the server to which a receiver forwards requests,
// for example "does not respond". isGood reports whether the upstream accepts requests.
func upstreamState(upstream *status.Forward) (text string, isGood bool) {
	switch upstream.State {
	case export.StateUnreachable:
		return "does not respond", false
	case export.StateRejecting:
		return "rejected the last request", false
	}
	return "accepts requests", true
}

// upstreamProblem describes the problem of the first upstream that does not accept requests. It returns "" if
// all upstreams accept them. An upstream is a server to which a receiver forwards requests.
func (t *statusText) upstreamProblem() string {
	for _, name := range t.receivers() {
		receiver := t.current.Receivers[name]
		if receiver.Forward == nil {
			continue
		}
		state, isGood := upstreamState(receiver.Forward)
		if !isGood {
			return "the upstream of " + sanitize.Text(receiver.Protocol) + " " + state
		}
	}
	return ""
}

// writeHeader writes the title line of a server: its name, its URL and its state. The state has a color
// that depends on isGood.
func (t *statusText) writeHeader(name, url, state string, isGood bool) {
	if isGood {
		state = t.good(state)
	} else {
		state = t.bad(state)
	}
	t.line("\n%s  %s  %s", t.bold(name), strings.TrimSpace(url), state)
}

// writeQueue writes the number and the size of queued payloads, and the age of the oldest one. It writes
// nothing if no payload is queued.
func (t *statusText) writeQueue(queue *status.Retry) {
	if queue.Payloads == 0 {
		return
	}
	oldest, maxAge := seconds(queue.OldestSeconds), seconds(queue.MaxSeconds)
	text := fmt.Sprintf("%s payloads are queued: %s of %s; the oldest for %s, dropped after %s",
		count(queue.Payloads), bytesText(queue.Bytes), bytesText(queue.MaxBytes), ago(oldest), ago(maxAge))
	t.line("  %s", t.warn(text))
}

// destinationProblem describes the first destination in a bad state. It returns "" if there is none.
func (t *statusText) destinationProblem() string {
	for i := range t.current.Destinations {
		d := &t.current.Destinations[i]
		state, isGood := t.destinationState(d)
		switch {
		case isGood:
			continue
		case d.Name == agentName:
			return "the agent " + state
		}
		return "the destination " + sanitize.Text(d.Name) + " " + state
	}
	return ""
}

// mostUnsent returns the largest number of unsent spans that a destination has. The numbers of several
// destinations are not added, because the same span can be unsent at each of them.
func (t *statusText) mostUnsent() uint64 {
	most := uint64(0)
	for i := range t.current.Destinations {
		most = max(most, t.current.Destinations[i].Accounting.Unsent)
	}
	return most
}

// agentName is the name of the agent among the destinations.
const agentName = "agent"

// destinationState describes the state of a destination, for example "accepts payloads". isGood is
// false if the destination does not respond, or does not accept statistics or payloads.
func (t *statusText) destinationState(d *status.DestinationStatus) (text string, isGood bool) {
	if d.Scraped != nil {
		return t.scrapeState(d.Scraped), true
	}
	switch d.State {
	case export.StateDiscovering:
		return "not discovered yet", true
	case export.StateUnreachable:
		return "does not respond", false
	}
	if d.Name == agentName && !t.current.Agent.Stats {
		return "does not accept statistics", false
	}
	if d.State == export.StateRejecting {
		return "responds, but does not accept payloads", false
	}
	return "accepts payloads", true
}

func (t *statusText) scrapeState(scraped *status.Scraped) string {
	if scraped.Last.IsZero() {
		return "not scraped yet"
	}
	return "last scrape " + ago(t.current.At.Sub(scraped.Last)) + " ago"
}
