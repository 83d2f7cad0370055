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

// counts are sums over spans. Durations are random, so that their sum reveals a lost span even if
// another span is counted twice.
type counts struct{ Spans, Errors, Duration uint64 }

func (c *counts) add(more counts) {
	c.Spans += more.Spans
	c.Errors += more.Errors
	c.Duration += more.Duration
}

// ledger records the spans that well-behaved senders sent, and the spans that arrived.
type ledger struct {
	mu      sync.Mutex
	senders map[string]*account // by sender name, which is also the service and environment of the spans
	others  counts              // hostile spans, and spans of an unknown sender
	counted uint64              // all spans in the daemons' payloads
	faults  []string            // invalid content of the daemons' payloads
}

// account is the account of one sender.
type account struct {
	sent      counts          // each span once, when it was first sent
	arrived   counts          // spans that arrived in statistics
	metrics   uint64          // spans that arrived in OTLP metrics
	byAgent   counts          // spans that the agent counted in traces without a counted marker
	accepted  map[uint64]bool // requests acknowledged to the sender
	delivered map[uint64]bool // requests that reached their destination
	attempts  uint64

	isMerged   bool      // its statistics are merged by the daemon, so its requests are not forwarded
	hasMetrics bool      // its daemon exports metrics as well
	last       time.Time // time when the last request completed
}

func newLedger() *ledger { return &ledger{senders: map[string]*account{}} }

// open creates the account of a sender.
func (l *ledger) open(name string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &account{accepted: map[uint64]bool{}, delivered: map[uint64]bool{}, last: time.Now()}
	l.senders[name] = a
	return a
}

// change calls change with the lock held, to change or read accounts.
func (l *ledger) change(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// recordPayload counts a payload that a daemon sends to the agent. A forwarded payload of a hostile
// sender has the hostile header.
func (l *ledger) recordPayload(r standin.Received) {
	if r.Header.Get(hostileHeader) != "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if name, number, sum, ok := readTag(r.Header); ok { // a tracer's payload, forwarded by its daemon
		a := l.senders[name]
		a.delivered[number] = true
		a.byAgent.add(sum)
		return
	}
	r.Payload.Check(true, l.recordFault, func(g *payload.Group, sketches ...*ddsketch.DDSketch) {
		for _, sketch := range sketches {
			if sketch != nil {
				l.counted += uint64(sketch.GetCount())
			}
		}
		to := &l.others
		if a := cmp.Or(l.senders[g.Service], l.senders[r.Payload.Env]); a != nil {
			to = &a.arrived
		}
		to.add(counts{g.Hits, g.Errors, g.Duration})
	})
}

// recordMetrics counts the OTLP metrics that a daemon exports in addition to its statistics.
func (l *ledger) recordMetrics(request collector.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, resource := range request {
		a := l.senders[serviceOf(resource)]
		if a == nil {
			continue
		}
		for _, scope := range resource.Scopes {
			for _, metric := range scope.Metrics {
				for _, point := range metric.Points { // only histogram points have a count
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

// recordFault records incorrect data in the agent. The caller holds the lock.
func (l *ledger) recordFault(format string, args ...any) {
	if len(l.faults) < payload.MaxProblems {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// recordTraces records a request that the agent accepted, and counts its spans if no daemon has.
func (l *ledger) recordTraces(t standin.Traces) {
	name, number, spans, ok := readTag(t.Header)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.senders[name]
	a.delivered[number] = true
	if !t.IsCounted {
		a.byAgent.add(spans)
	}
}

// recordDelivery records an OTLP request that the destination accepted.
func (l *ledger) recordDelivery(h http.Header) {
	if name, number, _, ok := readTag(h); ok {
		l.change(func() { l.senders[name].delivered[number] = true })
	}
}

// Request headers that daemons forward. The sender header contains the sender's name, the request
// number and the counts; the hostile header marks hostile requests.
const (
	senderHeader  = "X-Sender"
	hostileHeader = "X-Hostile"
)

func tagOf(name string, number uint64, c counts) string {
	return fmt.Sprintf("%s %d %d %d %d", name, number, c.Spans, c.Errors, c.Duration)
}

func readTag(h http.Header) (name string, number uint64, c counts, ok bool) {
	fields := strings.Fields(h.Get(senderHeader))
	if len(fields) != 5 {
		return "", 0, counts{}, false
	}
	var n [4]uint64
	for i := range n {
		n[i], _ = strconv.ParseUint(fields[i+1], 10, 64) // written by this program, so always valid
	}
	return fields[0], n[0], counts{n[1], n[2], n[3]}, true
}

// verdict is the result of comparing sent and arrived spans.
type verdict struct {
	Sent, Attempts uint64
	Lost, Twice    uint64
}

// compare compares the sent spans with the arrived spans and prints each difference.
func (l *ledger) compare(printf func(format string, args ...any)) (v verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.senders)) {
		a := l.senders[name]
		got := a.arrived
		got.add(a.byAgent)
		v.Sent += a.sent.Spans
		v.Attempts += a.attempts
		if got != a.sent {
			printf("%s sent %+v, but %+v arrived; the agent counted %d spans of them", name, a.sent, got,
				a.byAgent.Spans)
			v.Lost += max(a.sent.Spans, got.Spans) - got.Spans
			v.Twice += max(a.sent.Spans, got.Spans) - a.sent.Spans
		}
		if a.hasMetrics && a.metrics != a.arrived.Spans {
			printf("%s: %d spans arrived in statistics, but %d in metrics", name, a.arrived.Spans, a.metrics)
			v.Lost += max(a.arrived.Spans, a.metrics) - a.metrics
			v.Twice += max(a.arrived.Spans, a.metrics) - a.arrived.Spans
		}
		if got != a.sent && got.Spans == a.sent.Spans { // one span lost, another counted twice
			v.Lost++
			v.Twice++
		}
		for number := range a.accepted {
			if !a.delivered[number] && !a.isMerged {
				printf("%s: request %d was acknowledged, but did not reach the destination", name, number)
				v.Lost++
			}
		}
	}
	return v
}
