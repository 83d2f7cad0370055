package doctor_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/sdkmetrics"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/registry"
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
	s.Accounting = status.Accounting{
		Received: 9, Aggregated: 7, AdjustedCount: 7, Balanced: true,
		Dropped: map[string]uint64{"ignored": 2},
	}
	s.LostToCrashes = recovery.Losses{}
	s.Cycle.IntervalSeconds = 10
	s.Connections = status.Connections{Live: 1, Total: 2, Faults: map[string]uint64{"bad_frame": 0}}
	s.Receivers = map[string]*status.Receiver{
		"otlp": {
			Protocol: "OTLP", Requests: map[string]uint64{"counted": 3}, LastResponse: at.Add(-time.Second),
			Forward: &status.Forward{URL: "http://collector:4318", State: export.StateAccepting},
		},
		"apm": {
			Requests: map[string]uint64{"counted": 3}, LastResponse: at.Add(-time.Second),
			Datadog: &status.Datadog{Statistics: map[string]uint64{}},
		},
	}
	s.SDKs = &sdkmetrics.Sums{Started: 7, Sampled: 7, Exported: 7}
	s.Destinations = []status.DestinationStatus{
		{
			Name:       "agent",
			URL:        "http://agent:8126",
			State:      export.StateAccepting,
			Retry:      status.Retry{Bytes: 1, MaxBytes: 100},
			Accounting: status.DeliveryAccounting{Flushed: 7}, Clock: &status.Clock{AheadSeconds: 1},
		},
		{
			Name: "prometheus", URL: "/metrics/spans", Scraped: &status.Scraped{Last: at.Add(-9 * time.Second)},
			Accounting: status.DeliveryAccounting{Pending: 7},
		},
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

// TestLook_EachFinding checks that each finding occurs for its status, and not for a healthy one.
func TestLook_EachFinding(t *testing.T) {
	for _, one := range doctor.Diagnose(healthy(), version) {
		if one.Verdict != doctor.OK || one.Fix != "" {
			t.Errorf("finding about a healthy daemon: %+v", one)
		}
	}
	for _, c := range []struct {
		verdict doctor.Verdict
		says    string
		change  func(*status.Status)
	}{
		{doctor.Wrong, "program: the daemon is not ready: a socket", func(s *status.Status) {
			s.Ready, s.NotReady = false, "a socket"
		}},
		{
			doctor.Notice, "accounting: `tenant.id` of service `shop` wanted about 4,100 values, its budget is 200",
			func(s *status.Status) { s.Overflow = overflow(4104) },
		},
		{doctor.Notice, "objectives: checkout has counted no span, although 7 others were counted", func(s *status.Status) {
			s.Objectives = []status.Objective{{Name: "checkout"}}
		}},
		{
			doctor.Notice, "accounting: 3 more labels exceeded their budgets",
			func(s *status.Status) { s.Overflow = &registry.Overflow{LabelsNotMeasured: 3} },
		},
		{
			doctor.Notice, "sampling: SDKs report that they sampled 3 of 7 started spans",
			func(s *status.Status) { s.SDKs.Sampled = 3 },
		},
		{doctor.Wrong, "sdks: SDKs report 2 spans dropped before export", func(s *status.Status) { s.SDKs.Dropped = 2 }},
		{doctor.Wrong, "sdks: SDKs report 2 spans that their exporter failed", func(s *status.Status) { s.SDKs.Failed = 2 }},
		{
			doctor.Notice, "sdks: SDKs report 20 exported spans, but only 9 were received here",
			func(s *status.Status) { s.SDKs.Exported = 20 },
		},
		{doctor.Notice, "program: the daemon is version 2", func(s *status.Status) { s.Version = "2" }},
		{doctor.Wrong, "program: previous daemons that crashed or were killed: 2; with them, 5 spans were lost", func(s *status.Status) {
			s.Crashed, s.LostToCrashes.Receivers = 2, map[string]recovery.Loss{"otlp": {Lost: 5}}
		}},
		{doctor.Notice, "receiver socket: no native client has connected, and no other", func(s *status.Status) {
			s.Connections.Total, s.Receivers = 0, nil
		}},
		{doctor.Wrong, "receiver socket: 4 connections of native clients were closed: not_allowed", func(s *status.Status) {
			s.Connections.Faults["not_allowed"] = 4
		}},
		{doctor.Notice, "receiver otlp: no sender has connected yet", func(s *status.Status) {
			s.Receivers["otlp"].LastResponse = time.Time{}
		}},
		{doctor.Wrong, "receiver otlp: 3 connections over the limit were rejected", func(s *status.Status) {
			s.Receivers["otlp"].Refused = 3
		}},
		{doctor.Wrong, "receiver otlp: 6 requests were not counted: too_large", func(s *status.Status) {
			s.Receivers["otlp"].Requests["too_large"] = 6
		}},
		{doctor.Wrong, "receiver otlp: 6 requests were not counted: refused", func(s *status.Status) {
			s.Receivers["otlp"].Requests["refused"] = 6
		}},
		{doctor.Notice, "receiver otlp: 2 requests with metrics were accepted and discarded", func(s *status.Status) {
			s.Receivers["otlp"].DiscardedSignals = map[string]uint64{"metrics": 2, "logs": 0}
		}},
		{
			doctor.Wrong, "upstream of otlp: http://collector:4318 does not respond: refused",
			func(s *status.Status) {
				forward := s.Receivers["otlp"].Forward
				forward.State, forward.LastError = export.StateUnreachable, "refused"
			},
		},
		{doctor.Notice, "counted twice: 2 requests to the receiver otlp were not counted", func(s *status.Status) {
			s.Receivers["otlp"].Requests["computed_by_client"] = 2
		}},
		{
			doctor.Notice, "counted twice: requests forwarded to http://collector:4318 are marked",
			func(s *status.Status) {
				s.Config[0].Value = "header"
			},
		},
		{doctor.Notice, "counted twice: 3 requests to the receiver apm have statistics", func(s *status.Status) {
			of := s.Receivers["apm"].Statistics
			of["merged"], of["incompatible"] = 2, 1
		}},
		{
			doctor.Wrong, "destination agent: http://agent:8126 responds, but rejected the last request: 400",
			func(s *status.Status) {
				s.Destinations[0].State, s.Destinations[0].Flushes = export.StateRejecting, []export.Flush{
					{LastError: "400"},
					{},
				}
			},
		},
		{doctor.Wrong, "destination agent: http://agent:8126 does not respond", func(s *status.Status) {
			s.Destinations[0].State = export.StateUnreachable
		}},
		{doctor.Notice, "destination agent: no agent was found at http://agent:8126", func(s *status.Status) {
			s.Destinations[0].State = export.StateDiscovering
		}},
		{doctor.Wrong, "destination agent: 8 counted spans could not be sent: expired", func(s *status.Status) {
			d := &s.Destinations[0].Accounting
			d.Flushed, d.Unsent, d.UnsentBy = 0, 8, map[string]uint64{"expired": 8}
			s.Accounting.Received, s.Accounting.Aggregated, s.Accounting.AdjustedCount = 10, 8, 8
			s.Destinations[1].Accounting.Pending = 8
		}},
		{doctor.Wrong, "destination agent: 5 payloads are queued", func(s *status.Status) {
			s.Destinations[0].Retry = status.Retry{Payloads: 5, Bytes: 51, MaxBytes: 100}
		}},
		{doctor.Wrong, "destination agent: the clock of the destination differs by -6 s", func(s *status.Status) {
			s.Destinations[0].Clock.AheadSeconds = -6
		}},
		{
			doctor.Wrong, "destination prometheus: no scrape since the start, 3600 s ago",
			func(s *status.Status) {
				s.Destinations[1].Scraped.Last = time.Time{}
			},
		},
		{doctor.Wrong, "destination prometheus: the last scrape was 301 s ago", func(s *status.Status) {
			s.Destinations[1].Scraped.Last = s.At.Add(-301 * time.Second)
		}},
		{doctor.Wrong, "destinations: the daemon exports to no destination", func(s *status.Status) {
			s.Destinations = nil
		}},
		{doctor.Wrong, "accounting: the accounting does not balance: 10 spans received", func(s *status.Status) {
			s.Accounting.Received++
		}},
		{doctor.Wrong, "accounting: the accounting does not balance: of 7 counted spans", func(s *status.Status) {
			s.Destinations[1].Accounting.Pending--
		}},
		{doctor.Notice, "accounting: 12 spans received = 7 counted + 2 dropped", func(s *status.Status) {
			s.Accounting.Received, s.Partitions.Slots = 12, 64
		}},
		{doctor.Notice, "sampling: 7 counted spans stand for about 140", func(s *status.Status) {
			s.Accounting.AdjustedCount = 140
		}},
		{doctor.Wrong, "accounting: 3 received spans were dropped: ring_full", func(s *status.Status) {
			s.Accounting.Dropped["ring_full"], s.Accounting.Received = 3, 12
		}},
		{doctor.Wrong, "accounting: 3 spans were lost in native clients, as they report: buffer_full", func(s *status.Status) {
			s.ClientLost = map[string]uint64{"buffer_full": 3}
		}},
		{doctor.Notice, "accounting: 3 received spans were forwarded without being counted", func(s *status.Status) {
			s.Accounting.Dropped["left_to_agent"], s.Accounting.Received = 3, 12
		}},
		{
			doctor.Notice, "receiver apm: 6 requests were not counted here, but left to the agent: unparsable",
			func(s *status.Status) { s.Receivers["apm"].Requests["unparsable"] = 6 },
		},
		{doctor.Notice, "accounting: 3 spans are counted with a replaced origin", func(s *status.Status) {
			s.Collapsed = map[string]uint64{"origin": 3}
		}},
		{doctor.Wrong, "accounting: 5 values of the attributes in --measure are not counted", func(s *status.Status) {
			s.Accounting.Values.Refused = 5
		}},
		{doctor.Notice, "accounting: 7 received spans end in the future", func(s *status.Status) { s.Early = 7 }},
		{doctor.Notice, "limits: no memory limit is set", func(s *status.Status) {
			s.Memory.LimitBytes = 0
		}},
		{doctor.Wrong, "limits: the configured limits allow 65 MiB", func(s *status.Status) {
			s.Memory.TotalBytes = 65 << 20
		}},
		{doctor.Wrong, "limits: 60 MiB of 64 MiB of memory are used", func(s *status.Status) {
			s.Machine.ResidentBytes = 60 << 20
		}},
		{doctor.Wrong, "limits: the daemon was throttled for 40 s by its limit of 1.5", func(s *status.Status) {
			s.Machine.ThrottledSeconds = 40
		}},
		{doctor.Notice, "limits: the daemon uses 3 processors in parallel", func(s *status.Status) {
			s.Machine.Processors = 3
		}},
		{doctor.Wrong, "limits: 1000 of 1024 files are open", func(s *status.Status) {
			s.Machine.OpenFiles = 1000
		}},
		{doctor.Notice, "limits: --max-connections was lowered to 40", func(s *status.Status) {
			s.Config = append(s.Config,
				status.Setting{Name: "max-connections", Value: "40", Origin: "descriptors"})
		}},
	} {
		s := healthy()
		c.change(s)
		findings := doctor.Diagnose(s, version)
		if !has(findings, c.verdict, c.says) {
			t.Errorf("no %s %q in %+v", c.verdict, c.says, findings)
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
	fixes := map[string]string{}
	for _, one := range doctor.Diagnose(s, version) {
		if one.Verdict != doctor.OK {
			fixes[one.Message] = one.Fix
		}
	}
	if len(fixes) != 2 {
		t.Errorf("findings: %q", fixes)
	}
	for says, variable := range map[string]string{
		"2 requests with metrics": "OTEL_METRICS_EXPORTER=none", "3 requests with logs": "OTEL_LOGS_EXPORTER=none",
	} {
		isSaid := false
		for message, fix := range fixes {
			isSaid = isSaid || strings.HasPrefix(message, says) && strings.Contains(message, "no spans") &&
				strings.Contains(fix, variable) && !strings.Contains(message+fix, "destination")
		}
		if !isSaid {
			t.Errorf("no %q with %q in %q", says, variable, fixes)
		}
	}
}

// TestArrived_Verdicts compares the spans of one daemon with a sum over all daemons.
func TestArrived_Verdicts(t *testing.T) {
	for _, c := range []struct {
		flushed uint64
		has     bool
		calls   float64
		ahead   time.Duration
		verdict doctor.Verdict
		says    string
	}{
		{100, true, 100, 0, doctor.OK, "prometheus: Prometheus has 100 calls of all daemons"},
		{100, true, 99, 0, doctor.Notice, "prometheus: Prometheus has 99 calls"},
		{100, false, 0, 0, doctor.Wrong, "prometheus: 100 spans were exported, but Prometheus has no calls"},
		{0, false, 0, 0, doctor.Notice, "prometheus: no span was exported yet"},
		{100, true, 5000, 0, doctor.OK, "prometheus: Prometheus has 5000 calls"},
		{1, true, 5, -6 * time.Second, doctor.Wrong, "prometheus: the clock of Prometheus differs by -6 s"},
	} {
		s, f := healthy(), doctor.Findings{}
		s.Destinations[1].Accounting.Flushed = c.flushed
		f.CheckArrival(s, doctor.Arrival{HasCalls: c.has, Calls: c.calls, At: s.At.Add(c.ahead)})
		if !has(f, c.verdict, c.says) {
			t.Errorf("it does not say %q, but %+v", c.says, f)
		}
	}
}

// TestArrived_OtherNames checks that calls exported to an agent, or under Datadog's names, are not
// expected in Prometheus.
func TestArrived_OtherNames(t *testing.T) {
	s, f := healthy(), doctor.Findings{}
	s.Destinations = append(s.Destinations[:1],
		status.DestinationStatus{Name: "otlp", Accounting: status.DeliveryAccounting{Flushed: 9}})
	s.Config = append(s.Config, status.Setting{Name: "otlp-dialect", Value: "datadog"})
	if f.CheckArrival(s, doctor.Arrival{}); f.Wrong() > 0 {
		t.Errorf("%+v", f)
	}
	s.Config[len(s.Config)-1].Value = "spanmetrics"
	if f.CheckArrival(s, doctor.Arrival{}); f.Wrong() == 0 {
		t.Error("calls by the names that are asked for are not expected")
	}
	s, f = healthy(), doctor.Findings{}
	s.Config = append(s.Config, status.Setting{Name: "prometheus-dialect", Value: "conventions"})
	if f.CheckArrival(s, doctor.Arrival{}); !has(f, doctor.OK, "prometheus: Prometheus responds; spans are not compared") {
		t.Errorf("in the dialect conventions: %+v", f)
	}
}

// TestDiagnose_NoMachineFacts checks that a status without facts about the machine causes no finding about it.
func TestDiagnose_NoMachineFacts(t *testing.T) {
	s := healthy()
	s.Machine = status.Machine{}
	for _, one := range doctor.Diagnose(s, version) {
		if strings.Contains(one.Message, "files") || strings.Contains(one.Message, "processors") {
			t.Errorf("%+v", one)
		}
	}
}

// TestLook_ExportedSpansNotReceived covers the agent's rules, which ignore some spans, and spans counted by
// the sender, which are not received.
func TestLook_ExportedSpansNotReceived(t *testing.T) {
	for name, change := range map[string]func(*status.Status){
		"semantics": func(s *status.Status) {
			s.Config = append(s.Config, status.Setting{Name: "otlp-semantics", Value: "datadog"})
		},
		"computed by the client": func(s *status.Status) { s.Receivers["otlp"].Requests["computed_by_client"] = 1 },
	} {
		s := healthy()
		s.SDKs.Exported = 20
		change(s)
		for _, one := range doctor.Diagnose(s, version) {
			if one.Subject == "sdks" && one.Verdict != doctor.OK {
				t.Errorf("%s: it says %+v", name, one)
			}
		}
	}
}

// TestLook_TextsCannotForgeFindings puts line breaks and control characters into every text of a status.
func TestLook_TextsCannotForgeFindings(t *testing.T) {
	const hostile = "x\nok      accounting: all is well\x1b[2J\x1b]0;owned\a\u202e\u009b31m"
	s := healthy()
	s.Version, s.Crashed = hostile, 1
	s.Receivers = map[string]*status.Receiver{hostile: {
		Refused: 1, Requests: map[string]uint64{hostile: 1, "refused": 1, "computed_by_client": 1},
		DiscardedSignals: map[string]uint64{hostile: 1},
		Forward:          &status.Forward{URL: hostile, State: hostile, LastError: hostile},
	}}
	s.Destinations = []status.DestinationStatus{
		{Name: hostile, URL: hostile, State: export.StateUnreachable, Flushes: []export.Flush{{LastError: hostile}}},
		{Name: hostile, URL: hostile, Scraped: &status.Scraped{}},
	}
	s.Collapsed = map[string]uint64{hostile: 1}
	s.Memory.LimitSource, s.Memory.TotalBytes = hostile, 99<<20
	s.Config = []status.Setting{{Name: hostile, Value: hostile, Origin: status.FromDescriptors}, {Name: "socket", Value: hostile}}
	findings := doctor.Diagnose(s, version)
	s.Receivers, s.Connections.Total = nil, 0
	findings = append(findings, doctor.Diagnose(s, version)...)
	for _, one := range findings {
		if text := one.Subject + one.Message + one.Fix; strings.ContainsFunc(text, unicode.IsControl) ||
			strings.Contains(text, "\u202e") {
			t.Errorf("control characters in %+v", one)
		}
	}
	if n := findings.Wrong(); n < 10 {
		t.Errorf("only %d findings are wrong: %+v", n, findings)
	}
}

// TestLook_EmptyStatus checks that a status without any facts is not healthy.
func TestLook_EmptyStatus(t *testing.T) {
	if f := doctor.Diagnose(&status.Status{Schema: status.StatusSchema}, version); f.Wrong() < 2 {
		t.Errorf("findings about an empty status: %+v", f)
	}
}
