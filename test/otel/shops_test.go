package otel

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// language is the shop application in one language, with its SDK.
type language struct {
	command   []string
	env       []string
	protocols []string
	also      string         // exporter that writes spans to standard output
	isHeard   bool           // the SDK reports the outcome of its spans in metrics
	made      *regexp.Regexp // matches once per written span, with its trace ID
	order     string         // the routes
	stock     string
}

// requests is large enough for a meaningful twentieth: 50, with a standard deviation of 6.9.
const requests = 1000

// statuses are the HTTP statuses of a stock request, and of the order that causes it, by its number
// modulo 5.
var statuses = [5]uint32{200, 200, 201, 404, 500}

// test starts two shops, each with its own daemon, of which the first calls the second. It compares the
// counted and forwarded spans with the spans that the SDKs write to standard output.
func (l language) test(t *testing.T) {
	for _, protocol := range l.protocols {
		t.Run(protocol, func(t *testing.T) {
			behind := startReceiver(t)
			forward := []string{"--otlp-forward", behind.url, "--otlp-keep", share}
			stock := l.start(t, start(t, forward...), "stock", protocol)
			orders := l.start(t, start(t, forward...), "orders", protocol, "STOCK_URL="+stock.url)
			orders.request(t, requests)
			made := map[string]int{} // spans by trace ID
			for _, p := range []*pod{orders, stock} {
				wrote := l.traceIDs(p.stop(t))
				p.compareCount(t, wrote, made)
				p.compareSaid(t, l.isHeard, len(wrote))
			}
			each := requests / len(statuses)
			orders.compareLabels(t, "server", l.order, each)
			orders.compareLabels(t, "client", "", each)
			stock.compareLabels(t, "server", l.stock, each)
			compareForwarded(t, behind, made)
		})
	}
}

// compareCount compares the number of counted spans with the spans that the SDK wrote, and adds these
// to made.
func (p *pod) compareCount(t *testing.T, wrote []string, made map[string]int) {
	t.Helper()
	for _, id := range wrote {
		made[id]++
	}
	hits := 0
	for _, g := range p.daemon.groups {
		hits += int(g.Hits)
	}
	b := p.accounting
	if len(wrote) < requests || int(b.Received) != len(wrote) || hits != len(wrote) || b.DroppedTotal() != 0 {
		t.Errorf("%s: the SDK made %d spans, the agent has %d; accounting %+v", p.service, len(wrote), hits, b)
	}
	t.Logf("%s: %d spans made and counted", p.service, len(wrote))
}

// compareSaid checks the SDK's own metrics against the number of spans. The SDK's last metrics can be
// older than its last spans, and the Java SDK does not report started spans.
func (p *pod) compareSaid(t *testing.T, isHeard bool, spans int) {
	t.Helper()
	said := p.sdks
	if said == nil {
		if isHeard {
			t.Errorf("%s: nothing is heard of its SDK", p.service)
		}
		return
	}
	if said.Started != 0 && int(said.Started) != spans || said.Sampled != said.Started ||
		said.Exported == 0 || int(said.Exported) > spans || said.Failed+said.Dropped != 0 {
		t.Errorf("%s: of %d spans its SDK says %+v", p.service, spans, *said)
	}
}

// compareLabels checks the HTTP labels of the groups of one span kind: the count per status, and errors
// according to the semantic conventions.
func (p *pod) compareLabels(t *testing.T, kind, route string, each int) {
	t.Helper()
	type labels struct {
		method, route string
		status        uint32
		failed        bool
	}
	want, got := map[labels]int{}, map[labels]int{}
	for _, status := range statuses {
		want[labels{"GET", route, status, status >= 500 || kind == "client" && status >= 400}] += each
	}
	for _, g := range p.daemon.groups {
		if g.SpanKind != kind || g.Service != p.service {
			continue
		}
		for n, failed := range map[uint64]bool{g.Hits - g.Errors: false, g.Errors: true} {
			if n > 0 {
				got[labels{g.HTTPMethod, g.HTTPEndpoint, g.HTTPStatusCode, failed}] += int(n)
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s, %s: counted %v, want %v", p.service, kind, got, want)
	}
}

// compareForwarded checks that a trace is forwarded with all spans of both pods or not at all,
// depending on its ID, and that the number of forwarded traces is within five standard deviations of
// the share.
func compareForwarded(t *testing.T, behind *receiver, made map[string]int) {
	t.Helper()
	behind.mu.Lock()
	defer behind.mu.Unlock()
	if len(made) != requests {
		t.Errorf("%d traces were made", len(made))
	}
	if len(behind.state) != 1 || behind.state[state] == 0 {
		t.Fatalf("tracestates %v", behind.state)
	}
	want := map[string]int{}
	for id, spans := range made {
		randomness, err := strconv.ParseUint(id[len(id)-14:], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if randomness >= threshold {
			want[id] = spans
		}
	}
	got := map[string]int{}
	for id, spans := range behind.spans {
		got[fmt.Sprintf("%x", id)] = spans
	}
	if !maps.Equal(got, want) {
		t.Errorf("traces that went on: %v, want %v", got, want)
	}
	if len(got) < requests/20-5*7 || len(got) > requests/20+5*7 {
		t.Errorf("%d of %d traces went on", len(got), requests)
	}
	t.Logf("%d of %d traces went on", len(got), requests)
}

// The forwarded share, its tracestate entry, and the lowest randomness of forwarded traces, out of
// 2^56.
const (
	share     = "0.05"
	state     = "ot=th:f3333"
	threshold = 0xf3333 << 36
)

// traceIDs returns the trace IDs of the spans that an application's SDK has written.
func (l language) traceIDs(output string) (ids []string) {
	for _, found := range l.made.FindAllStringSubmatch(output, -1) {
		ids = append(ids, strings.ToLower(found[1]))
	}
	return ids
}
