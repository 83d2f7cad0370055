package fleet

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// tiers are the tiers downstream of the daemons: a load balancer, a changing set of gateways, and
// Prometheus.
type tiers struct {
	t            *testing.T
	prometheus   *prometheus
	kubernetes   *kubernetes
	port         string // port of every gateway
	gateways     []*gateway
	loadBalancer *process
	url          string // load balancer URL
	isHolding    bool   // the gateways respond before Prometheus has responded
}

// gateway is a collector that accumulates deltas. It has its own address and is reached through a tap.
type gateway struct {
	*process
	*tap
	name, address string
	isKilled      bool
}

func startTiers(t *testing.T, gateways int, isHolding bool) *tiers {
	t.Helper()
	f := &tiers{
		t: t, prometheus: startPrometheus(t), kubernetes: startKubernetes(t), port: freePort(t),
		isHolding: isHolding,
	}
	for range gateways {
		f.addGateway()
	}
	f.kubernetes.endpoints(f.addresses()...)
	f.url = "http://" + freeAddress(t)
	f.startLoadBalancer()
	return f
}

// addGateway starts another gateway. The load balancer does not know it yet.
func (f *tiers) addGateway() *gateway {
	f.t.Helper()
	n := len(f.gateways) + 1
	g := &gateway{name: fmt.Sprint("gateway-", n), address: fmt.Sprint("127.0.0.", 10+n)}
	behind := net.JoinHostPort(g.address, freePort(f.t))
	g.process = f.collector(g.name, "gateway.yaml", "LISTEN="+behind, "POD_NAME="+g.name,
		"PROMETHEUS_URL="+f.prometheus.url,
		fmt.Sprint("WAIT_FOR_RESULT=", !f.isHolding))
	g.listens(behind)
	g.tap = startTap(f.t, net.JoinHostPort(g.address, f.port), behind)
	f.gateways = append(f.gateways, g)
	return g
}

func (f *tiers) startLoadBalancer() {
	f.t.Helper()
	address := f.url[len("http://"):]
	f.loadBalancer = f.collector("load balancer", "loadbalancer.yaml", "LISTEN="+address,
		"GATEWAY_PORT="+f.port, "KUBECONFIG="+f.kubernetes.config(f.t))
	f.loadBalancer.listens(address)
}

func (f *tiers) collector(name, config string, env ...string) *process {
	f.t.Helper()
	path, err := filepath.Abs(filepath.Join("config", config))
	if err != nil {
		f.t.Fatal(err)
	}
	return start(f.t, name, env, program(f.t, "collector"), "--config", path)
}

func (p *tap) requestsAnswered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// lose kills a gateway just after it has accepted something. The cluster notices it later, and load
// continues in the meantime.
func (f *tiers) lose(g *gateway, meanwhile func()) {
	f.t.Helper()
	if before := g.requestsAnswered(); f.isHolding {
		eventually.True(f.t, g.name+" accepts a request",
			func() bool { return g.requestsAnswered() > before })
	}
	g.kill()
	g.server.Stop()
	g.isKilled = true
	left := f.addresses()
	const notice = 2 * time.Second // until the cluster notices the failure
	time.AfterFunc(notice, func() { f.kubernetes.endpoints(left...) })
	meanwhile()
}

// addresses returns the addresses of the running gateways.
func (f *tiers) addresses() (addresses []string) {
	for _, g := range f.gateways {
		if !g.isKilled {
			addresses = append(addresses, g.address)
		}
	}
	return addresses
}

// gain adds a gateway and waits until it receives data.
func (f *tiers) gain(meanwhile func()) {
	f.t.Helper()
	new := f.addGateway()
	f.kubernetes.endpoints(f.addresses()...)
	meanwhile()
	eventually.True(f.t, new.name+" takes what comes", func() bool { return new.requestsAnswered() > 0 })
}

// rest waits until Prometheus has everything that the running gateways have accepted.
func (f *tiers) rest() {
	f.t.Helper()
	for _, g := range f.gateways {
		if g.isKilled {
			continue
		}
		accepted := uint64(0)
		for _, s := range g.streams(durations) {
			accepted += s.accepted().count
		}
		eventually.True(f.t, "Prometheus has what was accepted by "+g.name, func() bool {
			has := f.prometheus.ask(fmt.Sprintf("histogram_count(sum(%s{gateway=%q}))",
				prometheusNames[durations], g.name))
			return len(has) == 1 && uint64(has[0].value) == accepted
		})
	}
}

// settle stops the collectors gracefully, so that nothing is in flight.
func (f *tiers) settle() {
	f.t.Helper()
	f.loadBalancer.stop()
	for _, g := range f.gateways {
		if !g.isKilled {
			g.stop()
		}
	}
}
