package statustext_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/sdkmetrics"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/statustext"
)

// controls matches all control characters except for line breaks.
var controls = regexp.MustCompile(`[^\P{C}\n]`)

// TestRender_EscapesControlCharacters sets every text from clients and destinations to a terminal control sequence.
func TestRender_EscapesControlCharacters(t *testing.T) {
	const hostile = "\x1b[2J\x1b]0;owned\a\u202e\u009b31m\r\nx\x00"
	now := time.Now()
	s := &status.Status{
		Schema: status.StatusSchema, At: now,
		Process: status.Process{Started: now.Add(-time.Hour), Version: hostile, NotReady: hostile},
		Spans: status.Spans{
			Accounting: status.Accounting{Received: 3, Dropped: map[string]uint64{hostile: 3}},
			Collapsed:  map[string]uint64{hostile: 1},
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
			Overflow: &registry.Overflow{Labels: []registry.LabelOverflow{{
				Service: hostile, Label: hostile, Collapsed: []registry.CollapsedValue{{Value: hostile}},
			}}},
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
		Senders: status.Senders{
			Connections: status.Connections{Total: 1},
			Clients:     []ingest.Tracer{{Service: hostile, Env: hostile, Lang: hostile}},
			Receivers: map[string]*status.Receiver{hostile: {
				Protocol: hostile, Requests: map[string]uint64{hostile: 1}, Forwarded: map[string]uint64{hostile: 1},
				Forward: &status.Forward{URL: hostile, State: export.StateRejecting, LastError: hostile},
			}},
		},
	}
	text := statustext.Render(s, nil, false)
	if found := controls.FindString(text); found != "" {
		t.Errorf("the text contains %q:\n%q", found, text)
	}
	if !strings.Contains(text, `\x1b[2J`) {
		t.Errorf("the labels are not shown:\n%s", text)
	}
}

// TestRender_AgentState checks that an agent that does not accept payloads is shown as a problem, even
// though no span is lost yet.
func TestRender_AgentState(t *testing.T) {
	for want, agent := range map[string]status.Agent{
		"problem: the agent responds, but does not accept payloads": {Reachable: true, Stats: true, State: export.StateRejecting},
		"problem: the agent does not respond":                       {Stats: true, State: export.StateUnreachable},
		"problem: the agent does not accept statistics":             {Reachable: true, State: export.StateRejecting},
		"Every received span is accounted for":                      {Reachable: true, Stats: true, State: export.StateAccepting},
	} {
		text := statustext.Render(&status.Status{
			Spans: status.Spans{Accounting: status.Accounting{
				Received: 7, Aggregated: 7, Balanced: true,
				DeliveryAccounting: status.DeliveryAccounting{Pending: 7, PendingInPayloads: 7},
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
			!strings.Contains(text, "the oldest for 1m 1s, dropped after 2m 0s") {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
}

// TestRender_EachDestination checks that an unreachable destination is shown next to a healthy agent,
// and that no agent is mentioned if there is none.
func TestRender_EachDestination(t *testing.T) {
	answer := status.Status{
		Spans: status.Spans{Accounting: status.Accounting{
			Received:           7,
			Aggregated:         7,
			Balanced:           true,
			DeliveryAccounting: status.DeliveryAccounting{Flushed: 7},
		}},
		Delivery: status.Delivery{
			Agent: status.Agent{URL: "unix:///agent", Reachable: true, Stats: true, State: export.StateAccepting},
			Destinations: []status.DestinationStatus{
				{Name: "agent", State: export.StateAccepting, Accounting: status.DeliveryAccounting{Flushed: 7}},
				{
					Name: "otlp", URL: "http://collector:4318", State: export.StateUnreachable,
					Accounting: status.DeliveryAccounting{Pending: 7, PendingInPayloads: 7},
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
		"No received span is lost yet, but there is a problem: the destination otlp does not respond.",
		"Destination agent  unix:///agent", "Destination otlp  http://collector:4318  does not respond",
		"0 flushed, 7 pending, 0 unsent", "the oldest for 1m 1s, dropped after 2m 0s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
	answer.Agent, answer.Destinations = status.Agent{State: status.AgentOff}, answer.Destinations[1:]
	lost := &answer.Accounting
	lost.Flushed, lost.Unsent, lost.UnsentBy = 0, 7, map[string]uint64{"expired": 7}
	answer.Destinations[0].Accounting = lost.DeliveryAccounting
	if text = statustext.Render(&answer, nil, false); strings.Contains(strings.ToLower(text), "agent") ||
		!strings.Contains(text, "7 of 7 received spans are lost.") || !strings.Contains(text, "expired 7") {
		t.Errorf("without an agent:\n%s", text)
	}
}

// TestRender_AgentNotDiscovered checks that an agent during discovery is shown as such, after the first
// destination.
func TestRender_AgentNotDiscovered(t *testing.T) {
	text := statustext.Render(&status.Status{
		Spans: status.Spans{Accounting: status.Accounting{
			Received: 7, Aggregated: 7, Balanced: true, DeliveryAccounting: status.DeliveryAccounting{Flushed: 7},
		}},
		Delivery: status.Delivery{
			Agent: status.Agent{URL: "http://127.0.0.1:8126", Stats: true, State: export.StateDiscovering},
			Destinations: []status.DestinationStatus{
				{Name: "prometheus", State: export.StateAccepting, Accounting: status.DeliveryAccounting{Flushed: 7}},
				{Name: "agent", State: export.StateDiscovering, Accounting: status.DeliveryAccounting{BeforeDiscovery: 7}},
			},
		},
	}, nil, false)
	for _, want := range []string{
		"Every received span is accounted for, and none is lost.", "7 spans were counted before it was discovered",
		"Destination agent  http://127.0.0.1:8126  not discovered yet",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
}

// TestRender_UpstreamState checks that an OTLP upstream that accepts no requests is shown as a
// problem, with the results of its requests and its last error, even though every span is counted.
func TestRender_UpstreamState(t *testing.T) {
	for state, want := range map[export.State]string{
		export.StateAccepting:   "Every received span is accounted for",
		export.StateRejecting:   "No received span is lost, but there is a problem: the upstream of OTLP rejected the last request.",
		export.StateUnreachable: "No received span is lost, but there is a problem: the upstream of OTLP does not respond.",
	} {
		text := statustext.Render(&status.Status{
			Spans: status.Spans{Accounting: status.Accounting{Received: 7, Balanced: true}},
			Senders: status.Senders{Receivers: map[string]*status.Receiver{"apm": {}, "otlp": {
				Protocol:  "OTLP",
				Forwarded: map[string]uint64{"accepted": 2, "refused": 5, "client_gone": 0},
				Forward: &status.Forward{
					URL: "http://collector:4318", State: state,
					LastError: "401 no key\x1b",
				},
			}}},
			Delivery: status.Delivery{Agent: status.Agent{State: status.AgentOff}},
		}, nil, false)
		for _, want := range []string{
			want, "Upstream of OTLP  http://collector:4318", "forwarded requests: accepted 2, refused 5",
			`last error: 401 no key\x1b`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", state, want, text)
			}
		}
	}
}

// TestRender_CrashedPredecessors covers crashed predecessors, which the accounting does not include.
func TestRender_CrashedPredecessors(t *testing.T) {
	lost := recovery.Losses{
		Unknown:   1,
		Receivers: map[string]recovery.Loss{"apm": {Lost: 11}, "otlp": {Lost: 3, Ambiguous: 5}},
		Awaited:   7,
	}
	const losses = " crashed or were killed: 14 spans are lost, 5 more may be lost, and clients are expected to resend 7.\n" +
		"The losses of 1 of them are unknown, because their recovery files are unreadable."
	for crashed, want := range map[int]string{
		0: "", 1: "The previous daemon" + strings.Replace(losses, "were killed", "was killed", 1),
		2: "2 previous daemons" + losses,
	} {
		text := statustext.Render(
			&status.Status{
				Process: status.Process{Crashed: crashed},
				Spans:   status.Spans{Accounting: status.Accounting{Received: 7, Balanced: true}, LostToCrashes: lost},
			},
			nil,
			false,
		)
		if strings.Contains(text, "killed") != (crashed > 0) || !strings.Contains(text, want) {
			t.Errorf("%d crashed daemons:\n%s", crashed, text)
		}
	}
}

// TestRender_Sampling checks that the summary does not claim that every span was counted if spans or SDKs report that
// a sampler discarded some.
func TestRender_Sampling(t *testing.T) {
	for want, change := range map[string]func(*status.Status){
		"none is lost.\nThe 39 counted spans stand for about 780: samplers discarded the others before the daemon.\n": func(s *status.Status) {
			s.Accounting.AdjustedCount = 780
		},
		"none is lost.\nSDKs report that they sampled 39 of 871 started spans. The others are not counted here.\n": func(s *status.Status) {
			s.SDKs = &sdkmetrics.Sums{Started: 871, Sampled: 39}
		},
		"Every received span is accounted for, and none is lost.\n\n": func(*status.Status) {},
	} {
		s := &status.Status{Spans: status.Spans{Accounting: status.Accounting{
			Received: 39, Aggregated: 39, AdjustedCount: 39, Balanced: true,
		}}}
		change(s)
		if text := statustext.Render(s, nil, false); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestRender_IgnoredSpansAreNotLost covers dropped spans that are not losses.
func TestRender_IgnoredSpansAreNotLost(t *testing.T) {
	s := &status.Status{Spans: status.Spans{Accounting: status.Accounting{
		Received: 9, Aggregated: 4, Balanced: true, Dropped: map[string]uint64{"ignored": 3, "left_to_agent": 2},
	}}}
	if text := statustext.Render(s, nil, false); !strings.Contains(text, "none is lost") {
		t.Errorf("ignored spans count as lost:\n%s", text)
	}
}

// TestRender_Order checks that requests come before the accounting, and internals last, and that native clients are not
// mentioned to a user of OTLP only.
func TestRender_Order(t *testing.T) {
	s := &status.Status{
		Interval: status.Interval{
			Busiest:  export.Busiest{Rows: []export.BusyKey{{Service: "shop", Resource: "GET /cart", Hits: 1}}},
			Drainers: []status.Drainer{{}},
		},
		Senders: status.Senders{Receivers: map[string]*status.Receiver{
			"otlp": {Protocol: "OTLP", Requests: map[string]uint64{"counted": 3}},
		}},
		Delivery: status.Delivery{
			Destinations: []status.DestinationStatus{{Name: "prometheus"}},
			Flushes:      []export.Flush{{Spans: 1}},
		},
	}
	text, at := statustext.Render(s, nil, false), 0
	for _, section := range []string{
		"\nRequests", "GET /cart", "\nAccounting", "\nDestination prometheus", "\nLast flushes", "\nSenders",
		"requests over OTLP: counted 3", "\nCardinality", "\nDrainers",
	} {
		next := strings.Index(text[at:], section)
		if next < 0 {
			t.Fatalf("%q is missing or too early in\n%s", section, text)
		}
		at += next
	}
	if strings.Contains(text, "native clients") {
		t.Errorf("native clients are mentioned:\n%s", text)
	}
}

// TestRender_ImplausibleNumbers checks that no number in a status can make Render fail.
func TestRender_ImplausibleNumbers(t *testing.T) {
	s := &status.Status{Interval: status.Interval{
		Busiest: export.Busiest{
			Rows:  []export.BusyKey{{Latency: []uint64{1, 2, 3}}, {Latency: []uint64{1}}, {}},
			Curve: export.CurveAxis{Columns: -5},
		},
		Drainers: []status.Drainer{{Ring: status.Ring{Slots: -1, Used: 5, HighWater: -9}}},
	}}
	statustext.Render(s, nil, false)
	s.Busiest.Rows[0].Latency, s.Busiest.Rows[1].Latency = nil, []uint64{0, 0, 5}
	statustext.Render(s, s, true)
}
