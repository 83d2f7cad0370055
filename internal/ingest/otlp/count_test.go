package otlp

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// TestRequest_TooLargeForRingsIsRefused covers a request with more spans than the rings can hold, and a daemon without a
// destination for statistics. The first is refused without a retry, the second accepted; neither is counted. With
// an upstream both are forwarded without the counted marker.
func TestRequest_TooLargeForRingsIsRefused(t *testing.T) {
	many := exported("shop", 0, 4000, 2)
	few := exported("shop", 10_000, 10, 2)
	for _, isForwarding := range []bool{false, true} {
		to := newCollector(t, false, nil)
		forward := forwardTo(t, to.url())
		h := newHarness(t, func(c *Config, a *aggregate.Config) {
			a.RingSlots = 1024
			if isForwarding {
				forward(c, a)
			}
		})
		client, want := h.client(false), http.StatusRequestEntityTooLarge
		if isForwarding {
			want = http.StatusOK
		}
		if a := post(t, client, many); a.status != want || a.header.Get("Retry-After") != "" {
			t.Errorf("forwarding %v: too many were answered %d", isForwarding, a.status)
		}
		h.admit.SetStatsWanted(false)
		if a := post(t, client, few); a.status != http.StatusOK {
			t.Errorf("forwarding %v: an unwanted request was answered %d", isForwarding, a.status)
		}
		if got := to.last(); isForwarding != (got.path != "") || got.header.Get(headerComputedStats) != "" {
			t.Errorf("forwarding %v: %s got %v", isForwarding, got.path, got.header)
		}
		h.admit.SetStatsWanted(true)
		if a := send(t, client, http.MethodPost, "/v1/traces", strings.NewReader(string(few)), "Content-Type",
			mediaProtobuf, headerComputedStats, "true"); a.status != http.StatusOK {
			t.Errorf("forwarding %v: what is counted already was answered %d", isForwarding, a.status)
		}
		h.stop()
		stats := h.Stats().Requests
		if stats["too_many"] != 1 || stats["not_wanted"] != 1 || stats["computed_by_client"] != 1 || len(h.rows) != 0 {
			t.Errorf("forwarding %v: requests %v, counted %v", isForwarding, stats, h.rows)
		}
		if in := h.admit.Stats(); in.Dropped["batch_too_large"] != 4000 || in.Dropped["not_wanted"] != 10 ||
			in.DroppedTotal() != 4010 {
			t.Errorf("forwarding %v: dropped %v", isForwarding, in.Dropped)
		}
	}
}

// TestLimits_TemporaryAreRetriedBySDK checks that spans that are over a limit temporarily are left to the SDK to
// retry, with and without an upstream. Until the retry, the spans are neither received nor dropped.
func TestLimits_TemporaryAreRetriedBySDK(t *testing.T) {
	to := newCollector(t, false, nil)
	h := newHarness(t, forwardTo(t, to.url()))
	h.admit.Stop()
	for _, isHTTP2 := range []bool{false, true} {
		if a := post(t, h.client(isHTTP2),
			exported("shop", 0, 10, 1)); a.status != http.StatusServiceUnavailable ||
			a.header.Get("Retry-After") == "" {
			t.Errorf("answered %+v", a)
		}
	}
	if got := to.last(); got.path != "" {
		t.Errorf("an uncounted request was forwarded to %s", got.path)
	}
	h.stop()
	if stats := h.admit.Stats(); stats.Received != 0 || h.Stats().Requests["no_room"] != 2 {
		t.Errorf("received %d, requests %v", stats.Received, h.Stats().Requests)
	}
}

// TestOrigins_OverLimitShareCommonOrigin checks that spans over the limit on origins are counted under the common origin.
func TestOrigins_OverLimitShareCommonOrigin(t *testing.T) {
	h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.MaxOrigins = 2 })
	for i, service := range []string{"a", "b", "c", "d"} {
		if a := post(t, h.client(false), exported(service, 100*i, 10, 1)); a.status != http.StatusOK {
			t.Errorf("%s was answered %d", service, a.status)
		}
	}
	h.stop()
	if h.rows["name 0"] != 40 || h.admit.Stats().Collapsed["origin"] != 20 {
		t.Errorf("counted %v, collapsed %v", h.rows, h.admit.Stats().Collapsed)
	}
}

// manyOrigins returns a request in protobuf or JSON with the given number of services. Each service has one
// resource per value of an attribute, with one span each.
func manyOrigins(services, values int, attribute string, isJSON bool) []byte {
	var resources []otlptest.Resource
	var inJSON []string
	for service := range services {
		for value := range values {
			id := uint64(1 + service*values + value)
			name, value := fmt.Sprint("shop ", service), fmt.Sprint("value ", value)
			resources = append(resources, otlptest.Resource{
				Attributes: []otlptest.Attribute{{"service.name", name}, {attribute, value}},
				Scopes: [][]otlptest.Span{{{
					Trace: id, ID: id, Name: name, Kind: spantable.KindServer, Start: 1, End: 2,
				}}},
			})
			inJSON = append(inJSON, fmt.Sprintf(`{"resource":{"attributes":[`+
				`{"key":"service.name","value":{"stringValue":%q}},{"key":%q,"value":{"stringValue":%q}}]},`+
				`"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x","name":%[1]q,"kind":2,`+
				`"startTimeUnixNano":"1","endTimeUnixNano":"2"}]}]}`, name, attribute, value, id, id))
		}
	}
	if isJSON {
		return []byte(`{"resourceSpans":[` + strings.Join(inJSON, ",") + "]}")
	}
	return otlptest.Request(resources...)
}

// TestOrigins_ManyInOneRequest checks that every span is counted once under the name of its service, and that
// the request is forwarded as counted. The statistics include the spans that share an origin.
func TestOrigins_ManyInOneRequest(t *testing.T) {
	all := map[Semantics]func(*Config, *aggregate.Config){
		SemanticsOTel: func(*Config, *aggregate.Config) {}, SemanticsDatadog: byAgent(newWishes()),
	}
	for _, test := range []struct {
		services, values int
		attribute        string
		shared           map[Semantics]uint64
	}{
		{33, 1, "host.name", map[Semantics]uint64{SemanticsOTel: 17, SemanticsDatadog: 0}},
		{1, 33, "service.instance.id", map[Semantics]uint64{SemanticsOTel: 2, SemanticsDatadog: 0}},
		{1, 200, "host.name", map[Semantics]uint64{SemanticsOTel: 169, SemanticsDatadog: 169}},
		{11, 3, "service.version", map[Semantics]uint64{SemanticsOTel: 12, SemanticsDatadog: 0}},
	} {
		for semantics, change := range all {
			for _, media := range []string{mediaProtobuf, mediaJSON} {
				to := newCollector(t, false, nil)
				forward := forwardTo(t, to.url())
				h := newHarness(t, func(c *Config, a *aggregate.Config) { change(c, a); forward(c, a) })
				body := manyOrigins(test.services, test.values, test.attribute, media == mediaJSON)
				a := send(t, h.client(false), http.MethodPost, "/v1/traces", bytes.NewReader(body),
					"Content-Type", media)
				h.stop()
				all, rows := uint64(test.services*test.values), uint64(0)
				for _, spans := range h.rows {
					rows += spans
				}
				stats := h.admit.Stats()
				if a.status != http.StatusOK || rows != all || len(h.rows) != test.services ||
					stats.Received != all || stats.DroppedTotal() != 0 ||
					stats.Collapsed["origin"] != test.shared[semantics] ||
					semantics == SemanticsOTel && stats.Collapsed["service"] != 0 {
					t.Errorf("%d services, %d of %s, %s, %s: %d %q; %d of %d counted, %d shared: %v", test.services,
						test.values, test.attribute, semantics, media, a.status, a.body, rows, all,
						stats.Collapsed["origin"], h.rows)
				}
				if got := to.last(); got.header.Get(headerComputedStats) == "" && semantics == SemanticsOTel {
					t.Errorf("it is forwarded as uncounted: %v", got.header)
				}
			}
		}
	}
}

func TestAdmission_RetryableIfRetryHelps(t *testing.T) {
	for _, reason := range []admit.DropReason{
		admit.DropRingFull, admit.DropOverShare, admit.DropRingContended,
		admit.DropShutdown,
	} {
		if _, no := respondToDrop(reason); no.result != ResultNoRoom || no.Retry == 0 {
			t.Errorf("%s is answered %+v", reason, no)
		}
	}
	if _, no := respondToDrop(admit.DropBatchTooLarge); no.result != ResultTooMany || no.Retry != 0 {
		t.Errorf("what no ring can hold is answered %+v", no)
	}
	if result, no := respondToDrop(admit.DropNotWanted); result != ResultNotWanted || no != nil {
		t.Errorf("an unwanted request is %s, answered %+v", resultNames[result], no)
	}
}

// broken panics while it reads a message.
type broken struct{ reader }

func (broken) read([]byte, bool) (Result, error) { panic("BUG") }

// TestPanic_CostsOneRequest checks that a panic while counting is contained: the SDK gets an error, and the next
// request is counted.
func TestPanic_CostsOneRequest(t *testing.T) {
	h := newHarness(t, func(c *Config, _ *aggregate.Config) { c.Counters = 1 })
	w := <-h.workspaces
	sound := w.reader
	w.reader = broken{sound}
	h.workspaces <- w
	if a := post(t, h.client(false), exported("shop", 0, 3, 1)); a.status != http.StatusInternalServerError ||
		statusIn(a) != otlpanswer.Internal {
		t.Errorf("answered %+v", a)
	}
	<-h.workspaces
	w.reader = sound
	h.workspaces <- w
	if a := post(t, h.client(true), exported("shop", 10, 3, 1)); a.status != http.StatusOK {
		t.Errorf("answered %+v", a)
	}
	h.stop()
	if h.rows["name 0"] != 3 || h.Stats().Requests["bug"] != 1 {
		t.Errorf("counted %v, requests %v", h.rows, h.Stats().Requests)
	}
}
