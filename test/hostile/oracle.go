package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/lab/standin"
	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
)

// counts are sums over spans. Durations are drawn at random, so that a span which is lost
// beside another one that counts twice shows in them.
type counts struct{ Spans, Errors, Duration uint64 }

func (c *counts) add(more counts) {
	c.Spans += more.Spans
	c.Errors += more.Errors
	c.Duration += more.Duration
}

// ledger has what polite senders handed over, and what arrived of it.
type ledger struct {
	mu      sync.Mutex
	senders map[string]*account // by the sender's name, which its spans have as service and environment
	others  counts              // of hostile spans, and of those whose sender nobody can tell
	counted uint64              // spans in the daemons' payloads, whoever sent them
	faults  []string            // in the daemons' payloads
}

// account is one sender's.
type account struct {
	handed  counts          // each span when it was first sent
	arrived counts          // in statistics
	metrics uint64          // spans that arrived in metrics of OTLP
	byAgent counts          // in traces that came to the agent without a mark
	taken   map[uint64]bool // requests that the sender was told are taken
	came    map[uint64]bool // requests that their destination took
	tries   uint64

	isMerged   bool      // its requests go no further than the daemon
	hasMetrics bool      // its daemon sends metrics as well
	last       time.Time // when a request had its end
}

func newLedger() *ledger { return &ledger{senders: map[string]*account{}} }

// open makes a sender's account.
func (l *ledger) open(name string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &account{taken: map[uint64]bool{}, came: map[uint64]bool{}, last: time.Now()}
	l.senders[name] = a
	return a
}

// change changes an account, or looks at it.
func (l *ledger) change(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// payload counts what a daemon sends to the agent. What hostile senders have a daemon pass
// on says so in its header.
func (l *ledger) payload(r standin.Received) {
	if r.Header.Get(hostileHeader) != "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if name, number, what, ok := readTag(r.Header); ok { // a tracer's, which its daemon passed on
		a := l.senders[name]
		a.came[number] = true
		a.byAgent.add(what)
		return
	}
	r.Payload.Check(true, l.fault, func(g *payload.Group, sketches ...*ddsketch.DDSketch) {
		for _, sketch := range sketches {
			if sketch != nil {
				l.counted += uint64(sketch.GetCount())
			}
		}
		into := &l.others
		if a := cmp.Or(l.senders[g.Service], l.senders[r.Payload.Env]); a != nil {
			into = &a.arrived
		}
		into.add(counts{g.Hits, g.Errors, g.Duration})
	})
}

// metricsOf counts what a daemon sends as metrics of OTLP, beside its statistics.
func (l *ledger) metricsOf(request collector.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, resource := range request {
		a := l.senders[serviceOf(resource)]
		if a == nil {
			continue
		}
		for _, scope := range resource.Scopes {
			for _, metric := range scope.Metrics {
				for _, point := range metric.Points { // a sum has no count
					a.metrics += point.Count
				}
			}
		}
	}
}

func serviceOf(r collector.Resource) (name string) {
	for _, a := range r.Attributes {
		if a.Key == "service.name" {
			name, _ = a.Value.(string)
		}
	}
	return name
}

// fault notes what the agent would show wrongly. The caller holds the lock.
func (l *ledger) fault(format string, args ...any) {
	if len(l.faults) < payload.MaxProblems {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// traces notes a request that the agent took, and counts its spans where nobody has.
func (l *ledger) traces(t standin.Traces) {
	name, number, spans, ok := readTag(t.Header)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.senders[name]
	a.came[number] = true
	if !t.IsCounted {
		a.byAgent.add(spans)
	}
}

// came notes a request of OTLP that the destination took.
func (l *ledger) came(h http.Header) {
	if name, number, _, ok := readTag(h); ok {
		l.change(func() { l.senders[name].came[number] = true })
	}
}

// The headers of requests, which daemons hand on: whose it is, with its number and what it
// holds, or that it is hostile.
const (
	politeHeader  = "X-Polite"
	hostileHeader = "X-Hostile"
)

func tagOf(name string, number uint64, c counts) string {
	return fmt.Sprintf("%s %d %d %d %d", name, number, c.Spans, c.Errors, c.Duration)
}

func readTag(h http.Header) (name string, number uint64, c counts, ok bool) {
	fields := strings.Fields(h.Get(politeHeader))
	if len(fields) != 5 {
		return "", 0, counts{}, false
	}
	var n [4]uint64
	for i := range n {
		n[i], _ = strconv.ParseUint(fields[i+1], 10, 64) // it is ours
	}
	return fields[0], n[0], counts{n[1], n[2], n[3]}, true
}

// verdict is what the books of both sides come to.
type verdict struct {
	Sent, Requests, Tries, Answered uint64
	Lost, Twice                     uint64
}

// judge compares what was handed over with what arrived, and says where they differ.
func (l *ledger) judge(say func(format string, args ...any)) (v verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.senders)) {
		a := l.senders[name]
		got := a.arrived
		got.add(a.byAgent)
		v.Sent += a.handed.Spans
		v.Tries += a.tries
		v.Answered += uint64(len(a.taken))
		if got != a.handed {
			say("%s handed over %+v, and %+v arrived, of which the agent counted %d", name, a.handed, got,
				a.byAgent.Spans)
			v.Lost += max(a.handed.Spans, got.Spans) - got.Spans
			v.Twice += max(a.handed.Spans, got.Spans) - a.handed.Spans
		}
		if a.hasMetrics && a.metrics != a.arrived.Spans {
			say("of %s %d spans arrived in statistics, and %d in metrics", name, a.arrived.Spans, a.metrics)
			v.Lost += max(a.arrived.Spans, a.metrics) - a.metrics
			v.Twice += max(a.arrived.Spans, a.metrics) - a.arrived.Spans
		}
		if got != a.handed && got.Spans == a.handed.Spans { // one for the other
			v.Lost++
			v.Twice++
		}
		for number := range a.taken {
			if !a.came[number] && !a.isMerged {
				say("%s was told that its request %d is taken, and it never came", name, number)
				v.Lost++
			}
		}
	}
	return v
}
