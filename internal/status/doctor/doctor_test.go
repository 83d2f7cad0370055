package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/sdkmetrics"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/doctor"
)

const version = "1.2.3"

// healthy returns the status of a daemon without problems.
func healthy() *status.Status {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &status.Status{At: at}
	s.Process = status.Process{
		Version: version, Started: at.Add(-time.Hour), UptimeSeconds: 3600,
		Ready: true,
	}
	s.Books = status.Books{
		Received: 9, Aggregated: 7, Balanced: true,
		Dropped: map[string]uint64{"ignored": 2},
	}
	s.Killed = recovery.Losses{}
	s.Cycle.IntervalSeconds = 10
	s.Connections = status.Connections{Live: 1, Total: 2, Faults: map[string]uint64{"bad_frame": 0}}
	s.Receivers = map[string]*status.ForwardingReceiver{"otlp": {
		Receives: "OTLP",
		Receiver: status.Receiver{Requests: map[string]uint64{"counted": 3}, LastHeard: at.Add(-time.Second)},
		Forward:  &status.Forward{URL: "http://collector:4318", State: "takes"},
	}}
	s.SDKs = &sdkmetrics.Sums{Started: 7, Sampled: 7, Exported: 7}
	s.APM = &status.APM{Statistics: map[string]uint64{}}
	s.Destinations = []status.DestinationStatus{
		{
			Name:  "agent",
			URL:   "http://agent:8126",
			State: "takes",
			Retry: status.Retry{Bytes: 1, MaxBytes: 100},
			Books: status.DeliveryBooks{Flushed: 7}, Clock: &status.Clock{AheadSeconds: 1},
		},
		{Name: "prometheus", URL: "/metrics/spans", Scraped: &status.Scraped{Last: at.Add(-9 * time.Second)}},
	}
	s.Memory = status.Memory{
		TotalBytes: 10 << 20, LimitBytes: 64 << 20, LimitSource: "/sys/fs/cgroup/memory.max",
	}
	s.Machine = status.Machine{
		Processors:       2,
		CPULimit:         1.5,
		ThrottledSeconds: 1,
		OpenFiles:        20,
		MaxFiles:         1024,
		ResidentBytes:    20 << 20,
	}
	s.Config = []status.Setting{{Name: "otlp-mark", Value: "attribute"}, {Name: "socket", Value: "/run/s"}}
	return s
}

// TestEachFindingIsTrueOfAStatus checks that each finding occurs for its status, and not for a healthy one.
func TestEachFindingIsTrueOfAStatus(t *testing.T) {
	for _, one := range doctor.Look(healthy(), version) {
		if one.Verdict != doctor.OK || one.Fix != "" {
			t.Errorf("of a healthy daemon it says %+v", one)
		}
	}
	for _, c := range []struct {
		verdict doctor.Verdict
		says    string
		change  func(*status.Status)
	}{
		{doctor.Wrong, "program: it is not ready: a socket", func(s *status.Status) {
			s.Ready, s.NotReady = false, "a socket"
		}},
		{
			doctor.Notice, "sdks: of 7 spans they sampled 4 away",
			func(s *status.Status) { s.SDKs.Sampled = 3 },
		},
		{doctor.Wrong, "sdks: 2 spans never left their SDK", func(s *status.Status) { s.SDKs.Dropped = 2 }},
		{doctor.Wrong, "sdks: 2 spans were given up", func(s *status.Status) { s.SDKs.Failed = 2 }},
		{
			doctor.Notice, "sdks: they exported 20 spans, of which at most 9 came here",
			func(s *status.Status) { s.SDKs.Exported = 20 },
		},
		{doctor.Notice, "program: the daemon is version 2", func(s *status.Status) { s.Version = "2" }},
		{doctor.Wrong, "program: 2 daemons before this one were killed; 5 spans", func(s *status.Status) {
			s.Died, s.Killed.Receivers = 2, map[string]recovery.Loss{"otlp": {Lost: 5}}
		}},
		{doctor.Notice, "door socket: no client has connected", func(s *status.Status) {
			s.Connections.Total, s.Receivers = 0, nil
		}},
		{doctor.Wrong, "door socket: 4 connections were closed: not_allowed", func(s *status.Status) {
			s.Connections.Faults["not_allowed"] = 4
		}},
		{doctor.Notice, "door otlp: it is open, and nobody has sent OTLP", func(s *status.Status) {
			s.Receivers["otlp"].LastHeard = time.Time{}
		}},
		{doctor.Wrong, "door otlp: 3 connections found no room", func(s *status.Status) {
			s.Receivers["otlp"].Refused = 3
		}},
		{doctor.Wrong, "door otlp: 6 requests were not counted: too_large", func(s *status.Status) {
			s.Receivers["otlp"].Requests["too_large"] = 6
		}},
		{doctor.Wrong, "door otlp: 6 requests were not counted: refused", func(s *status.Status) {
			s.Receivers["otlp"].Requests["refused"] = 6
		}},
		{doctor.Notice, "door otlp: 2 requests with metrics were accepted and discarded", func(s *status.Status) {
			s.Receivers["otlp"].DiscardedSignals = map[string]uint64{"metrics": 2, "logs": 0}
		}},
		{
			doctor.Wrong, "door otlp forward: http://collector:4318 does not answer: refused",
			func(s *status.Status) {
				s.Receivers["otlp"].Forward.State, s.Receivers["otlp"].Forward.Said = "silent", "refused"
			},
		},
		{doctor.Notice, "counted twice: door otlp: of 2 requests the sender", func(s *status.Status) {
			s.Receivers["otlp"].Requests["by_tracer"] = 2
		}},
		{
			doctor.Notice, "counted twice: door otlp: what goes on to http://collector:4318",
			func(s *status.Status) {
				s.Config[0].Value = "header"
			},
		},
		{doctor.Notice, "counted twice: 3 requests with statistics", func(s *status.Status) {
			s.APM.Statistics["merged"], s.APM.Statistics["unfit"] = 2, 1
		}},
		{
			doctor.Wrong, "destination agent: http://agent:8126 answers, and takes nothing: 400",
			func(s *status.Status) {
				s.Destinations[0].State, s.Destinations[0].Flushes = "answers", []export.Flush{
					{LastError: "400"},
					{},
				}
			},
		},
		{doctor.Wrong, "destination agent: http://agent:8126 does not answer", func(s *status.Status) {
			s.Destinations[0].State = "silent"
		}},
		{doctor.Notice, "destination agent: nobody named an agent", func(s *status.Status) {
			s.Destinations[0].State = "looked_for"
		}},
		{doctor.Wrong, "destination agent: 8 spans did not get there: expired", func(s *status.Status) {
			s.Destinations[0].Books.UnsentBy = map[string]uint64{"expired": 8}
		}},
		{doctor.Wrong, "destination agent: 5 payloads wait", func(s *status.Status) {
			s.Destinations[0].Retry = status.Retry{Payloads: 5, Bytes: 51, MaxBytes: 100}
		}},
		{doctor.Wrong, "destination agent: its clock differs by -6 s", func(s *status.Status) {
			s.Destinations[0].Clock.AheadSeconds = -6
		}},
		{
			doctor.Wrong, "destination prometheus: nobody has scraped it since the start, 3600 s ago",
			func(s *status.Status) {
				s.Destinations[1].Scraped.Last = time.Time{}
			},
		},
		{doctor.Wrong, "destination prometheus: it was scraped 301 s ago", func(s *status.Status) {
			s.Destinations[1].Scraped.Last = s.At.Add(-301 * time.Second)
		}},
		{doctor.Wrong, "sums: the books do not balance", func(s *status.Status) { s.Books.Balanced = false }},
		{doctor.Wrong, "sums: 3 spans came and were not counted: ring_full", func(s *status.Status) {
			s.Books.Dropped["ring_full"] = 3
		}},
		{doctor.Wrong, "sums: 3 spans never came, as their clients say: buffer_full", func(s *status.Status) {
			s.ClientLost = map[string]uint64{"buffer_full": 3}
		}},
		{doctor.Notice, "sums: 3 spans could not be counted here", func(s *status.Status) {
			s.Books.Dropped["left_to_agent"] = 3
		}},
		{
			doctor.Notice, "door apm: 6 requests were left to the agent to count: unread",
			func(s *status.Status) {
				s.Receivers["apm"] = &status.ForwardingReceiver{Receiver: status.Receiver{
					Requests:  map[string]uint64{"unread": 6},
					LastHeard: s.At,
				}}
			},
		},
		{doctor.Notice, "sums: 3 spans are counted without their own origin", func(s *status.Status) {
			s.Collapsed = map[string]uint64{"origin": 3}
		}},
		{doctor.Notice, "sums: 7 spans end in the future", func(s *status.Status) { s.Early = 7 }},
		{doctor.Notice, "limits: no limit of memory is known", func(s *status.Status) {
			s.Memory.LimitBytes = 0
		}},
		{doctor.Wrong, "limits: all limits together may come to 65 MiB", func(s *status.Status) {
			s.Memory.TotalBytes = 65 << 20
		}},
		{doctor.Wrong, "limits: 60 MiB of 64 MiB are used", func(s *status.Status) {
			s.Machine.ResidentBytes = 60 << 20
		}},
		{doctor.Wrong, "limits: it was held back for 40 s by its limit of 1.5", func(s *status.Status) {
			s.Machine.ThrottledSeconds = 40
		}},
		{doctor.Notice, "limits: it uses 3 processors at a time", func(s *status.Status) {
			s.Machine.Processors = 3
		}},
		{doctor.Wrong, "limits: 1000 of 1024 files are open", func(s *status.Status) {
			s.Machine.OpenFiles = 1000
		}},
		{doctor.Notice, "limits: --max-connections is 40", func(s *status.Status) {
			s.Config = append(s.Config,
				status.Setting{Name: "max-connections", Value: "40", Origin: "descriptors"})
		}},
	} {
		s := healthy()
		c.change(s)
		findings := doctor.Look(s, version)
		if !has(findings, c.verdict, c.says) {
			t.Errorf("it does not say %s %q, but %+v", c.verdict, c.says, findings)
		}
		if n := findings.Wrong(); (n > 0) != (c.verdict == doctor.Wrong) {
			t.Errorf("%q: %d findings are wrong", c.says, n)
		}
	}
}

// has reports whether there is a finding with the given verdict whose subject and message begin with says. A finding that
// is not OK must have a fix as well.
func has(all doctor.Findings, v doctor.Verdict, says string) bool {
	for _, one := range all {
		if one.Verdict == v && strings.HasPrefix(one.Subject+": "+one.Message, says) &&
			(one.Fix != "" || v == doctor.OK) {
			return true
		}
	}
	return false
}

// TestLook_NamesTheExporterToSwitchOff covers metrics and logs that an SDK sends to a daemon without
// --otlp-forward. They lose no spans, and no destination has refused them.
func TestLook_NamesTheExporterToSwitchOff(t *testing.T) {
	s := healthy()
	d := s.Receivers["otlp"]
	d.Forward, d.DiscardedSignals = nil, map[string]uint64{"metrics": 2, "logs": 3}
	d.Requests["other"] = 5
	mends := map[string]string{}
	for _, one := range doctor.Look(s, version) {
		if one.Verdict != doctor.OK {
			mends[one.Message] = one.Fix
		}
	}
	if len(mends) != 2 {
		t.Errorf("it finds %q", mends)
	}
	for says, variable := range map[string]string{
		"2 requests with metrics": "OTEL_METRICS_EXPORTER=none", "3 requests with logs": "OTEL_LOGS_EXPORTER=none",
	} {
		isSaid := false
		for said, mend := range mends {
			isSaid = isSaid || strings.HasPrefix(said, says) && strings.Contains(said, "no spans") &&
				strings.Contains(mend, variable) && !strings.Contains(said+mend, "destination")
		}
		if !isSaid {
			t.Errorf("it does not say %q and %q: %q", says, variable, mends)
		}
	}
}

// TestWhatArrivedIsComparedWithWhatWasGivenOut compares the spans of one daemon with a sum over all daemons.
func TestWhatArrivedIsComparedWithWhatWasGivenOut(t *testing.T) {
	for _, c := range []struct {
		flushed uint64
		has     bool
		calls   float64
		ahead   time.Duration
		verdict doctor.Verdict
		says    string
	}{
		{100, true, 100, 0, doctor.OK, "prometheus: it has 100 calls of all daemons"},
		{100, true, 99, 0, doctor.Notice, "prometheus: it has 99 calls"},
		{100, false, 0, 0, doctor.Wrong, "prometheus: 100 spans were given out, and it has no calls"},
		{0, false, 0, 0, doctor.Notice, "prometheus: it has no calls, and none"},
		{100, true, 5000, 0, doctor.OK, "prometheus: it has 5000 calls"},
		{1, true, 5, -6 * time.Second, doctor.Wrong, "prometheus: its clock differs by -6 s"},
	} {
		s, f := healthy(), doctor.Findings{}
		s.Destinations[1].Books.Flushed = c.flushed
		f.Arrived(s, doctor.Arrival{Has: c.has, Calls: c.calls, At: s.At.Add(c.ahead)})
		if !has(f, c.verdict, c.says) {
			t.Errorf("it does not say %q, but %+v", c.says, f)
		}
	}
}

// TestWhatHasOtherNamesIsNotExpected checks that calls exported to an agent, or under Datadog's names, are not
// expected in Prometheus.
func TestWhatHasOtherNamesIsNotExpected(t *testing.T) {
	s, f := healthy(), doctor.Findings{}
	s.Destinations = append(s.Destinations[:1],
		status.DestinationStatus{Name: "otlp", Books: status.DeliveryBooks{Flushed: 9}})
	s.Config = append(s.Config, status.Setting{Name: "otlp-dialect", Value: "datadog"})
	if f.Arrived(s, doctor.Arrival{}); f.Wrong() > 0 {
		t.Errorf("%+v", f)
	}
	s.Config[len(s.Config)-1].Value = "spanmetrics"
	if f.Arrived(s, doctor.Arrival{}); f.Wrong() == 0 {
		t.Error("calls by the names that are asked for are not expected")
	}
}

// TestADaemonOfBeforeSaysNothingOfItsMachine checks that the status of an older daemon causes no finding about the
// machine.
func TestADaemonOfBeforeSaysNothingOfItsMachine(t *testing.T) {
	s := healthy()
	s.Machine = status.Machine{}
	for _, one := range doctor.Look(s, version) {
		if strings.Contains(one.Message, "files") || strings.Contains(one.Message, "processors") {
			t.Errorf("%+v", one)
		}
	}
}

// TestWhereNotAllIsReceivedNothingIsMissing covers the agent's rules, which ignore some spans, and spans counted by
// the sender, which are not received.
func TestWhereNotAllIsReceivedNothingIsMissing(t *testing.T) {
	for name, change := range map[string]func(*status.Status){
		"reading": func(s *status.Status) {
			s.Config = append(s.Config, status.Setting{Name: "otlp-reading", Value: "datadog"})
		},
		"counted before": func(s *status.Status) { s.Receivers["otlp"].Requests["by_tracer"] = 1 },
	} {
		s := healthy()
		s.SDKs.Exported = 20
		change(s)
		for _, one := range doctor.Look(s, version) {
			if one.Subject == "sdks" && one.Verdict != doctor.OK {
				t.Errorf("%s: it says %+v", name, one)
			}
		}
	}
}
