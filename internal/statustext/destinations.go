package statustext

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/shown"
)

// agent is the way to it and what waits, where there is one.
func (t *statusText) agent() {
	a := &t.now.Agent
	if a.State == health.AgentOff {
		return
	}
	state, well := agentState(a)
	t.state("Agent", shown.Text(a.URL)+" "+shown.Text(a.Version), state, well)
	t.waiting(&t.now.Retry)
}

// others are the destinations beside the agent, each with its books.
func (t *statusText) others() {
	for i := range t.now.Destinations {
		d := &t.now.Destinations[i]
		if i == 0 && t.now.Agent.State != health.AgentOff {
			continue // it is the agent
		}
		state, well := destinationState(d)
		t.state("Destination "+shown.Text(d.Name), shown.Text(d.URL), state, well)
		t.line("  %s flushed, %s held, %s unsent  %s", count(d.Books.Flushed), count(d.Books.Held),
			count(d.Books.Unsent), t.warn(nonZeroCounts(d.Books.UnsentBy)))
		t.waiting(&d.Retry)
	}
}

// forward is where OTLP goes on to, and what became of requests there.
func (t *statusText) forward() {
	if t.now.OTLP == nil || t.now.OTLP.Forward == nil {
		return
	}
	to := t.now.OTLP.Forward
	state, well := forwardState(to)
	t.state("OTLP goes on to", shown.Text(to.URL), state, well)
	if requests := nonZeroCounts(t.now.OTLP.Forwarded); requests != "" {
		t.line("  requests: %s", requests)
	}
	if to.Said != "" {
		t.line("  %s", t.warn(clip(shown.Text(to.Said), 4*shownLabel)))
	}
}

// forwardState is how a destination of OTLP does, and whether that is well.
func forwardState(to *health.Forward) (text string, well bool) {
	switch to.State {
	case flush.Silent:
		return "does not answer", false
	case flush.Answers:
		return "answers, and did not take the last request", false
	}
	return "takes requests", true
}

// forwardTrouble is the same in a sentence, "" where it is well or where there is none.
func (t *statusText) forwardTrouble() string {
	if t.now.OTLP != nil && t.now.OTLP.Forward != nil {
		if state, well := forwardState(t.now.OTLP.Forward); !well {
			return "destination of OTLP " + state
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

func (t *statusText) waiting(r *health.Retry) {
	if r.Payloads > 0 {
		t.line(
			"  %s",
			t.warn(fmt.Sprintf(
				"%s payloads wait, %s of %s, the oldest for %s of %s",
				count(r.Payloads),
				bytesText(
					r.Bytes,
				),
				bytesText(r.MaxBytes),
				ago(seconds(r.OldestSeconds)),
				ago(seconds(r.MaxSeconds)),
			)),
		)
	}
}

// trouble says of the first destination that does not do well how it does, "" where all do.
func (t *statusText) trouble() string {
	if t.now.Agent.State != health.AgentOff {
		if state, well := agentState(&t.now.Agent); !well {
			return "agent " + state
		}
	}
	for i := range t.now.Destinations {
		if state, well := destinationState(&t.now.Destinations[i]); !well {
			return "destination " + shown.Text(t.now.Destinations[i].Name) + " " + state
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

// agentState is how the agent does, and whether that is well.
func agentState(a *health.Agent) (text string, well bool) {
	switch {
	case !a.Reachable:
		return "does not answer", false
	case !a.Stats:
		return "takes no statistics", false
	case a.State == flush.Answers:
		return "answers, and does not take payloads", false
	}
	return "takes payloads", true
}

// destinationState is the same of any destination.
func destinationState(d *health.DestinationStatus) (text string, well bool) {
	switch d.State {
	case flush.Silent:
		return "does not answer", false
	case flush.Answers:
		return "answers, and does not take payloads", false
	}
	return "takes payloads", true
}
