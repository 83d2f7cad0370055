package fleet

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestTiers tests the tiers alone, with deltas from the SDK. Under load, a gateway is killed and
// another one added, and Prometheus becomes unavailable. A gateway that responds only after Prometheus
// has responded loses nothing.
func TestTiers(t *testing.T) {
	f := startTiers(t, 2, false)
	s := &sender{t: t, url: f.url, many: 50, now: newOracle(t), began: time.Now()}
	l := startLoad(t, s)
	deliver := func(times int) {
		for range times {
			time.Sleep(time.Second)
			s.deliver()
		}
	}
	deliver(3)
	f.lose(f.gateways[0], func() { deliver(3) })
	f.gain(func() { deliver(3) })
	f.prometheus.stop()
	deliver(2)
	f.prometheus.begin(t)
	deliver(2)
	l.stop(t)
	s.deliver()
	f.rest()
	f.settle()
	if a := f.account(t, l.oracle.counted(t)); a.held != 0 {
		t.Errorf("%d spans went with a gateway that holds none", a.held)
	}
	t.Logf("requests that were not taken at once: %d", s.refused)
}

// TestFleet runs 215 pods on four nodes, with a daemon per node. Under load, a gateway is killed,
// another one added, and the load balancer unavailable for longer than a request timeout. In the end
// Prometheus has every span in its bucket, except for the spans that the killed gateway had accepted
// and still held.
func TestFleet(t *testing.T) {
	f := startTiers(t, 2, true)
	daemons := []*daemon{
		f.daemon("node-1", 200), f.daemon("node-2", 5), f.daemon("node-3", 5),
		f.daemon("node-4", 5),
	}
	sources := []source{}
	for _, d := range daemons {
		sources = append(sources, d)
	}
	l := startLoad(t, sources...)
	const some = 4 * time.Second // several intervals
	time.Sleep(some)
	f.lose(f.gateways[0], func() { time.Sleep(some) })
	f.quiet(daemons)
	f.gain(func() { time.Sleep(some) })
	f.loadBalancer.stop()
	time.Sleep(some)
	f.startLoadBalancer()
	time.Sleep(some)
	l.stop(t)
	for _, d := range daemons {
		d.hands(t)
		eventually.True(t, d.host+" has delivered all",
			func() bool { return d.accounting().Flushed == d.published })
		d.mustBalance(d.published)
		d.stop()
	}
	f.settle()
	f.account(t, l.oracle.counted(t))
}

// daemon starts a daemon that allows all its origins to come from the same process, as they do here.
func (f *tiers) daemon(host string, pods int) *daemon {
	return startDaemon(f.t, host, pods, "--otlp-metrics-endpoint", f.url+"/v1/metrics", "--max-origins=512")
}

// quiet waits until no daemon has anything to retry. If a gateway is added during a retry, a stream can
// be counted twice: by its old gateway and by its new one.
func (f *tiers) quiet(daemons []*daemon) {
	f.t.Helper()
	for _, d := range daemons {
		eventually.True(f.t, d.host+" has nothing to send again",
			func() bool { return d.counted("retry_queue_bytes", "otlp", "") == 0 })
	}
}
