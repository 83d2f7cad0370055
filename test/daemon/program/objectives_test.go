package program

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestObjectives_ExactAcrossKill kills a daemon that Prometheus has scraped, with spans that it has not. The client sends
// those again. The scraped counters of both daemons together have each span once.
func TestObjectives_ExactAcrossKill(t *testing.T) {
	socket := filepath.Join(sockets(t), "s")
	start := func() *process {
		return daemonProcess(t, "off", socket, "--prometheus", "--slo", "checkout: service=shop, span=POST /checkout, 300ms, 99.9%")
	}
	first := start()
	c, err := client.Open(client.Config{
		Socket: socket, MaxAge: time.Millisecond, MaxBackoff: 50 * time.Millisecond, Origin: client.Origin{Service: "shop"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	publish := func(good, slow int) {
		for i := range good + slow {
			duration := 300 * time.Millisecond
			if i >= good {
				duration++
			}
			c.Publish([]client.Snapshot{{
				Key:      client.Key{Service: "shop", Operation: "http.request", Resource: "POST /checkout", Kind: "server"},
				Duration: duration, End: time.Now(),
			}})
		}
	}
	awaitScraped := func(p *process, events, good float64) {
		t.Helper()
		eventually.True(t, "all spans to be scraped", func() bool {
			scraped := p.get("/metrics/spans")
			return metric(scraped, `traces_slo_events_total{slo="checkout"}`) == events &&
				metric(scraped, `traces_slo_good_events_total{slo="checkout"}`) == good
		})
	}
	awaitReceived := func(p *process, spans float64) {
		t.Helper()
		eventually.True(t, "the spans to be received", func() bool {
			return metric(p.get("/metrics"), "spanstatsd_spans_received_total") == spans
		})
	}
	awaitScraped(first, 0, 0)
	publish(90, 10)
	awaitScraped(first, 100, 90)
	eventually.True(t, "the client to know that its spans were scraped", func() bool { return c.Stats().Unsettled == 0 })
	awaitStartOfInterval()
	publish(30, 20)
	awaitReceived(first, 150)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.exit()

	second := start()
	awaitReceived(second, 50)
	publish(5, 2)
	awaitReceived(second, 57)
	awaitScraped(second, 57, 35)
}
