package tracers

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/test/agent/realagent"
)

// setting is the configuration of a tracer and of the daemon.
type setting struct {
	protocol string // as in "0.4"
	computes bool   // client-computed statistics
	drop     bool   // half of the traces are unsampled and not forwarded to the agent
	renames  bool   // DD_TRACE_RESOURCE_RENAMING_ENABLED
	labels   bool   // the daemon counts traces with the tracer's labels
}

func (s setting) String() string {
	switch {
	case s.renames:
		return s.protocol + " labels renamed"
	case s.labels:
		return s.protocol + " labels"
	case s.computes:
		return s.protocol + " computes"
	case s.drop:
		return s.protocol + " drop-unsampled"
	}
	return s.protocol
}

// rate returns the tracer's sampling rate. It is always set, because otherwise the agent would reduce
// the rate of a busy tracer after a second, at an unpredictable moment.
func (s setting) rate() string {
	if s.drop {
		return "0.5"
	}
	return "1"
}

// pair is two agents, one with the daemon and one without it, and the fork that sends a tracer's
// requests to both.
type pair struct {
	through, direct *realagent.Agent
	daemon          *runningDaemon
	fork            *fork
}

func startPair(t *testing.T, s setting) *pair {
	t.Helper()
	p := &pair{through: startAgent(t), direct: startAgent(t)}
	p.daemon = startDaemon(t, p.through.Socket, func(c *datadog.Config) {
		if !s.drop {
			c.DropUnsampled = datadog.DropOff // by default the agent decides, and this one supports dropping
		}
		if s.labels {
			c.Labels = dd.Labels{OfTracer: true, AdditionalTags: additionalTags, RenamesResources: s.renames}
		}
	})
	p.fork = startFork(t, p.daemon.socket, p.direct.Socket, s.labels)
	return p
}

// outcome is the result of a run, which is equal for both agents.
type outcome struct {
	counted  float64 // spans in statistics
	byTracer float64 // of these, in client-computed statistics
	left     float64 // of these, left to the agent by the daemon
	spans    int64   // spans in traces
}

// compare stops everything and compares the output of the two agents.
func (p *pair) compare(t *testing.T, s setting) outcome {
	t.Helper()
	p.fork.wait()
	accounting, counters := p.daemon.stop(t)
	p.through.Stop()
	p.direct.Stop()
	t.Logf("the tracer's requests: %s; the daemon's: %v", p.fork, counters)

	got, want := p.through.Spans.Load(), p.direct.Spans.Load()
	if got != want || got == 0 {
		t.Errorf("%d spans of traces reached the agent through the daemon, %d without it", got, want)
	}
	if sent := p.fork.count("/v0.6/stats"); (sent > 0) != s.computes ||
		counters[mergedStatistics] != float64(sent) {
		t.Errorf("of %d requests with statistics %v were merged", sent, counters[mergedStatistics])
	}
	if cut := counters[unsampledTraces]; (cut > 0) != s.drop {
		t.Errorf("%v traces were not forwarded", cut)
	}

	// A tracer with client-computed statistics can send traces without the computed header, as
	// dd-trace-go does on exit. Both the agent and the daemon count such traces again.
	ours, spans := groupsOf(t, &p.through.Received, &p.through.Computed)
	theirs, counted := groupsOf(t, &p.direct.Received, &p.direct.Computed)
	_, byTracer := groupsOf(t, &p.direct.Received)
	_, left := groupsOf(t, &p.through.Computed)
	if spans != counted || !maps.EqualFunc(ours, theirs, group.equals) {
		t.Errorf("%v spans through the daemon, %v without it\n%s", spans, counted, difference(ours, theirs))
	}
	if !accounting.Balanced || accounting.Flushed != accounting.Aggregated ||
		!s.computes && float64(accounting.Flushed) != spans-left {
		t.Errorf("the accounting: %+v", accounting)
	}
	t.Logf("%d spans in traces; %v in the statistics' %d groups, %v of them left to the agent, %d through "+
		"the accounting", got, spans, len(ours), left, accounting.Flushed)
	return outcome{spans, byTracer, left, got}
}

// difference describes the difference between two agents.
func difference(ours, theirs map[string]group) (text string) {
	all := maps.Clone(ours)
	maps.Copy(all, theirs)
	for key := range all {
		if !ours[key].equals(theirs[key]) {
			text += fmt.Sprintf("%s\n\tthrough the daemon %+v\n\twithout it         %+v\n", key, ours[key],
				theirs[key])
		}
	}
	return text
}

// equals reports whether two groups have the same counts and bins. Converted bins contain fractions, so
// their sums depend on the order of addition.
func (a group) equals(b group) bool {
	same := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(a+b) }
	return a.hits == b.hits && a.errors == b.errors && a.topLevel == b.topLevel && a.duration == b.duration &&
		same(a.fine, b.fine) && same(a.failed, b.failed)
}
