package daemon_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/doctor"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// tenantSpans returns an OTLP request of the service shop with two spans for each of n tenants, and many for
// the last one. All have the same region.
func tenantSpans(n int) []byte {
	var spans []string
	add := func(tenant int) {
		now := time.Now().UnixNano()
		spans = append(spans, fmt.Sprintf(`{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"%016x",`+
			`"name":"GET /","startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[`+
			`{"key":"tenant.id","value":{"stringValue":"tenant-%d"}},{"key":"region","value":{"stringValue":"eu"}}]}`,
			len(spans)+1, now-1000, now, tenant))
	}
	for range 2 {
		for tenant := range n {
			add(tenant)
		}
	}
	for range 2 * n {
		add(n - 1)
	}
	return []byte(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},` +
		`"scopeSpans":[{"spans":[` + strings.Join(spans, ",") + `]}]}]}`)
}

// statusOf returns the status of a daemon.
func statusOf(t *testing.T, p *pair) (s status.Status) {
	t.Helper()
	response, err := http.Get("http://" + p.HTTPAddr() + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err = json.NewDecoder(response.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// planned applies the flags of a plan to a configuration.
func planned(t *testing.T, c *daemon.Config, flags []string) {
	t.Helper()
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		number, err := strconv.Atoi(strings.TrimSuffix(value[strings.LastIndex(value, "=")+1:], "MiB"))
		if err != nil {
			t.Fatalf("the plan has the flag %s: %v", flag, err)
		}
		switch {
		case strings.HasPrefix(flag, "--cardinality-limit=tag:tenant.id="):
			c.Aggregate.LimitTag("tenant.id", number)
		case name == "--max-aggregates":
			c.Aggregate.MaxAggregates = number
		case name == "--label-bytes":
			c.Aggregate.LabelBytes = number << 20
		default:
			t.Fatalf("the plan has the unexpected flag %s", flag)
		}
	}
}

// TestOverflow_PlanHoldsAllValues floods one attribute of OTLP spans. The status must name it with the number
// of its values and the most frequent one, and must not name an attribute within its budget. With the
// flags of the plan, a second daemon keeps all values.
func TestOverflow_PlanHoldsAllValues(t *testing.T) {
	const tenants = 4100
	start := func(change func(*daemon.Config)) (p *pair, at string) {
		p = startPair(t, func(c *daemon.Config) {
			at = takesOTLP(c)
			c.OTLP.Labels.Attributes = []string{"tenant.id", "region"}
			c.Aggregate.LimitTag("tenant.id", 200)
			change(c)
		})
		return p, at
	}
	p, at := start(func(*daemon.Config) {})
	defer p.stop()
	post(t, at, "/v1/traces", "application/json", tenantSpans(tenants))
	var s status.Status
	eventually.True(t, "the status names the overflow", func() bool {
		s = statusOf(t, p)
		return s.Overflow != nil
	})
	if len(s.Overflow.Labels) != 1 {
		t.Fatalf("the overflow is %+v", s.Overflow)
	}
	label := s.Overflow.Labels[0]
	if label.Service != "shop" || label.Label != "tag:tenant.id" || label.Budget != 200 {
		t.Errorf("the label is %+v", label)
	}
	if deviation := math.Abs(float64(label.Wanted)/tenants - 1); deviation > 0.05 {
		t.Errorf("the estimate of %d values is %d", tenants, label.Wanted)
	}
	if top := label.Collapsed[0].Value; top != fmt.Sprint("tenant-", tenants-1) {
		t.Errorf("the most frequent collapsed value is %q", top)
	}

	plan := doctor.NewPlan(&s)
	large, at := start(func(c *daemon.Config) { planned(t, c, plan.Flags) })
	defer large.stop()
	post(t, at, "/v1/traces", "application/json", tenantSpans(tenants))
	eventually.True(t, "an interval with all spans has ended", func() bool {
		s := statusOf(t, large)
		return s.Accounting.Flushed == 4*tenants
	})
	if s := statusOf(t, large); s.Overflow != nil {
		t.Errorf("with larger budgets, the overflow is %+v", s.Overflow)
	}
	if strings.Contains(metricsOf(t, large.Daemon), "spanstatsd_label_values_wanted{") {
		t.Error("a metric names a label within its budget")
	}
}
