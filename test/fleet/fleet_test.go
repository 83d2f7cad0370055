package fleet

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// The tiers by themselves, given deltas by the SDK: a gateway dies while load runs, another comes, and
// Prometheus is away. A gateway that answers when Prometheus has answered takes nothing with it.
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

// 215 pods on four nodes, a daemon each. While load runs a gateway is killed, another one added, and
// the load balancer away for longer than any request waits. In the end Prometheus has every
// span in its bucket, but for what the gateway that was killed had accepted and held.
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
	const some = 4 * time.Second // intervals
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
			func() bool { return d.books().Flushed == d.published })
		d.mustBalance(d.published)
		d.stop()
	}
	f.settle()
	f.account(t, l.oracle.counted(t))
}

// daemon starts one whose origins may all be of one process, as they are here.
func (f *tiers) daemon(host string, pods int) *daemon {
	return startDaemon(f.t, host, pods, "--otlp-metrics-endpoint", f.url+"/v1/metrics", "--max-origins=512")
}

// quiet waits until no daemon has anything that it must send again. Who adds a
// gateway while a request is sent again may have a stream counted twice: by
// the gateway that it had, and by the one that it has now.
func (f *tiers) quiet(daemons []*daemon) {
	f.t.Helper()
	for _, d := range daemons {
		eventually.True(f.t, d.host+" has nothing to send again",
			func() bool { return d.counted("retry_queue_bytes", "otlp", "") == 0 })
	}
}
