package statustext_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/statustext"
)

// controls matches all control characters except for line breaks.
var controls = regexp.MustCompile(`[^\P{C}\n]`)

// TestStatusTextIsSafe sets every text from clients and destinations to a terminal control sequence.
func TestStatusTextIsSafe(t *testing.T) {
	const hostile = "\x1b[2J\x1b]0;owned\a\u202e\u009b31m\r\nx\x00"
	now := time.Now()
	s := &status.Status{
		Schema: 1, At: now,
		Process: status.Process{Started: now.Add(-time.Hour), Version: hostile, NotReady: hostile},
		Spans: status.Spans{
			Books:     status.Books{Received: 3, Dropped: map[string]uint64{hostile: 3}},
			Collapsed: map[string]uint64{hostile: 1},
		},
		Delivery: status.Delivery{
			Agent:        status.Agent{URL: hostile, Version: hostile},
			Destinations: []status.DestinationStatus{{Name: "agent"}, {Name: hostile, URL: hostile}},
			Flushes: []export.Flush{{
				LastError: hostile,
				Outcomes:  map[export.Result]int{export.ResultAccepted: 1},
			}},
		},
		Interval: status.Interval{
			Drainers: []status.Drainer{{Ring: status.Ring{Slots: 8, Used: 9, HighWater: 12}}},
			Busiest: export.Busiest{
				Rows: []export.BusyKey{
					{
						Service:   hostile,
						Operation: hostile,
						Resource:  hostile,
						Hits:      1,
						Latency:   []uint64{0, 4, 1},
					},
				},
				Curve: export.CurveAxis{Columns: 3},
			},
		},
		Senders: status.Senders{Tracers: []ingest.Tracer{{Service: hostile, Env: hostile, Lang: hostile}}},
	}
	text := statustext.Render(s, nil, false)
	if found := controls.FindString(text); found != "" {
		t.Errorf("the text holds %q:\n%q", found, text)
	}
	if !strings.Contains(text, `\x1b[2J`) {
		t.Errorf("the labels are not shown:\n%s", text)
	}
}

// TestStatusSaysWhatTheAgentDoes checks that an agent that does not accept payloads is shown as a problem, even
// though no span is lost yet.
func TestStatusSaysWhatTheAgentDoes(t *testing.T) {
	for want, agent := range map[string]status.Agent{
		"the agent answers, and does not take payloads": {Reachable: true, Stats: true, State: export.StateRejecting},
		"the agent does not answer":                     {Stats: true, State: export.StateSilent},
		"the agent takes no statistics":                 {Reachable: true, State: export.StateRejecting},
		"Every span is accounted for":                   {Reachable: true, Stats: true, State: export.StateAccepting},
	} {
		text := statustext.Render(&status.Status{
			Spans: status.Spans{Books: status.Books{
				Received: 7, Aggregated: 7, Balanced: true,
				DeliveryBooks: status.DeliveryBooks{Held: 7, HeldInPayloads: 7},
			}},
			Delivery: status.Delivery{Agent: agent, Destinations: []status.DestinationStatus{{
				Name: "agent", State: agent.State,
				Retry: status.Retry{
					Payloads: 1, Bytes: 100, MaxBytes: 1000, OldestSeconds: 61,
					MaxSeconds: 120,
				},
			}}},
		}, nil, false)
		if !strings.Contains(text, want) ||
			strings.Contains(text, "accounted for") != (agent.State == export.StateAccepting) ||
			!strings.Contains(text, "the oldest for 1m 1s of 2m 0s") {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
}

// TestStatusSaysWhatEachDestinationDoes checks that an unreachable destination is shown next to a healthy agent,
// and that no agent is mentioned if there is none.
func TestStatusSaysWhatEachDestinationDoes(t *testing.T) {
	answer := status.Status{
		Spans: status.Spans{Books: status.Books{
			Received:      7,
			Aggregated:    7,
			Balanced:      true,
			DeliveryBooks: status.DeliveryBooks{Flushed: 7},
		}},
		Delivery: status.Delivery{
			Agent: status.Agent{URL: "unix:///agent", Reachable: true, Stats: true, State: export.StateAccepting},
			Destinations: []status.DestinationStatus{
				{Name: "agent", State: export.StateAccepting, Books: status.DeliveryBooks{Flushed: 7}},
				{
					Name: "otlp", URL: "http://collector:4318", State: export.StateSilent,
					Books: status.DeliveryBooks{Held: 7, HeldInPayloads: 7},
					Retry: status.Retry{
						Payloads:      1,
						Bytes:         100,
						MaxBytes:      1000,
						OldestSeconds: 61,
						MaxSeconds:    120,
					},
				},
			},
		},
	}
	text := statustext.Render(&answer, nil, false)
	for _, want := range []string{
		"No span is lost yet, but the destination otlp does not answer.", "Agent  unix:///agent",
		"Destination otlp  http://collector:4318  does not answer", "0 flushed, 7 held, 0 unsent",
		"the oldest for 1m 1s of 2m 0s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
	answer.Agent, answer.Destinations = status.Agent{State: status.AgentOff}, answer.Destinations[1:]
	lost := &answer.Destinations[0].Books
	lost.Held, lost.Unsent, lost.UnsentBy = 0, 7, map[string]uint64{"expired": 7}
	if text = statustext.Render(&answer, nil, false); strings.Contains(strings.ToLower(text), "agent") ||
		!strings.Contains(text, "7 of 7 spans are lost") || !strings.Contains(text, "7 unsent  expired 7") {
		t.Errorf("without an agent:\n%s", text)
	}
}

// TestAnAgentThatIsLookedForIsNoTrouble checks that an agent during discovery is shown as such, after the first
// destination.
func TestAnAgentThatIsLookedForIsNoTrouble(t *testing.T) {
	text := statustext.Render(&status.Status{
		Spans: status.Spans{Books: status.Books{
			Received: 7, Aggregated: 7, Balanced: true, DeliveryBooks: status.DeliveryBooks{Flushed: 7},
		}},
		Delivery: status.Delivery{
			Agent: status.Agent{URL: "http://127.0.0.1:8126", Stats: true, State: export.StateDiscovering},
			Destinations: []status.DestinationStatus{
				{Name: "prometheus", State: export.StateAccepting, Books: status.DeliveryBooks{Flushed: 7}},
				{Name: "agent", State: export.StateDiscovering, Books: status.DeliveryBooks{BeforeFound: 7}},
			},
		},
	}, nil, false)
	for _, want := range []string{
		"Every span is accounted for, and none is lost.", "7 counted before it was found",
		"Agent  http://127.0.0.1:8126   looked for there, not found",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
}

// TestStatusSaysHowADestinationOfOTLPDoes checks that an OTLP upstream that accepts no requests is shown as a
// problem, with the results of its requests and its last error, even though every span is counted.
func TestStatusSaysHowADestinationOfOTLPDoes(t *testing.T) {
	for state, want := range map[export.State]string{
		export.StateAccepting: "Every span is accounted for",
		export.StateRejecting: "No span is lost, but the destination of OTLP answers, and did not take the last request.",
		export.StateSilent:    "No span is lost, but the destination of OTLP does not answer.",
	} {
		text := statustext.Render(&status.Status{
			Spans: status.Spans{Books: status.Books{Received: 7, Balanced: true}},
			Senders: status.Senders{Receivers: map[string]*status.ForwardingReceiver{"apm": {}, "otlp": {
				Receives:  "OTLP",
				Forwarded: map[string]uint64{"accepted": 2, "refused": 5, "client_gone": 0},
				Forward: &status.Forward{
					URL: "http://collector:4318", State: state,
					Said: "401 no key\x1b",
				},
			}}},
			Delivery: status.Delivery{Agent: status.Agent{State: status.AgentOff}},
		}, nil, false)
		for _, want := range []string{
			want, "OTLP goes on to  http://collector:4318", "requests: accepted 2, refused 5", `401 no key\x1b`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", state, want, text)
			}
		}
	}
}

// TestStatusSaysThatTheDaemonBeforeWasKilled covers crashed predecessors, which the accounting does not include.
func TestStatusSaysThatTheDaemonBeforeWasKilled(t *testing.T) {
	killed := recovery.Losses{
		Unknown:   1,
		Receivers: map[string]recovery.Loss{"apm": {Lost: 11}, "otlp": {Lost: 3, Ambiguous: 5}},
		Awaited:   7,
	}
	const held = " killed: 14 spans are lost, 5 more may have arrived, 7 are awaited from clients.\n" +
		"Nobody knows what 1 of them held."
	for died, want := range map[int]string{
		0: "", 1: "The daemon before this one was" + held, 2: "2 daemons before this one were" + held,
	} {
		text := statustext.Render(
			&status.Status{
				Process: status.Process{Died: died},
				Spans:   status.Spans{Books: status.Books{Received: 7, Balanced: true}, Killed: killed},
			},
			nil,
			false,
		)
		if strings.Contains(text, "killed") != (died > 0) || !strings.Contains(text, want) {
			t.Errorf("%d daemons died:\n%s", died, text)
		}
	}
}
