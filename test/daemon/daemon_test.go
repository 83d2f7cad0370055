package daemon_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	exporter "github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// TestMain runs more parallel tests than there are processors, since most of them wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	m.Run()
}

// pair is a daemon with a fake agent.
type pair struct {
	*daemon.Daemon
	t      *testing.T
	agent  *standin.Agent
	socket string
}

func startPair(t *testing.T, change func(*daemon.Config)) *pair {
	t.Helper()
	dir, err := os.MkdirTemp("", "dp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	agent, err := standin.Start(standin.Config{Network: "unix", Address: filepath.Join(dir, "a")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	config := testConfig(t, dir, agent.URL())
	if change != nil {
		change(&config)
	}
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	return &pair{Daemon: d, t: t, agent: agent, socket: config.Ingest.Socket.Path}
}

func testConfig(t *testing.T, dir, agent string) daemon.Config {
	t.Helper()
	config := daemon.DefaultConfig()
	config.HTTPAddr, config.Version = "127.0.0.1:0", "test"
	config.Log = slog.New(slog.DiscardHandler)
	config.Ingest.Socket.Path = filepath.Join(dir, "s")
	config.ShutdownGrace = 20 * time.Second
	config.Aggregate.FlushInterval = time.Second
	var err error
	if config.Agent.URL, err = exporter.ParseURL(agent); err != nil {
		t.Fatal(err)
	}
	return config
}

// metric returns the value of a metric, or 0 if the metric is missing.
func (p *pair) metric(name string) float64 {
	p.t.Helper()
	response, err := http.Get("http://" + p.HTTPAddr() + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, is := strings.CutPrefix(lines.Text(), name+" "); is {
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return number
		}
	}
	return 0
}

func (p *pair) client(service string) *client.Client {
	p.t.Helper()
	c, err := client.Open(client.Config{
		Socket: p.socket, MaxAge: time.Millisecond,
		Origin: client.Origin{Service: service},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func batch(n int, resource string) []client.Snapshot {
	snapshots := make([]client.Snapshot, n)
	for i := range snapshots {
		snapshots[i] = client.Snapshot{
			Key:      client.Key{Service: "shop", Operation: "op", Resource: resource},
			Duration: time.Millisecond, End: time.Now(),
		}
	}
	return snapshots
}

// stop stops the daemon and checks that its accounting balances and that the agent has the same counts.
func (p *pair) stop() {
	p.t.Helper()
	accounting := p.Stop()
	if !accounting.Balanced || accounting.Pending != 0 {
		p.t.Errorf("accounting does not balance: %+v", accounting)
	}
	totals := p.agent.Totals()
	if totals.Hits != accounting.Flushed || len(totals.Problems) > 0 {
		p.t.Errorf("the agent counted %d hits, %d were flushed; problems %v", totals.Hits, accounting.Flushed,
			totals.Problems)
	}
}

// TestAccounting_BalancesAfterFlush checks the accounting after each of several flushes.
func TestAccounting_BalancesAfterFlush(t *testing.T) {
	p := startPair(t, nil)
	c := p.client("shop")
	for i := range 5 {
		c.Publish(batch(100, fmt.Sprint(i)))
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := uint64(100 * (i + 1))
		if b := p.Accounting(); !b.Balanced || b.Received != want || b.Flushed != want || b.Pending != 0 {
			t.Errorf("after %d spans: %+v", want, b)
		}
	}
	p.stop()
}

// TestFlush_Concurrent checks that each of several concurrent flush requests gets a response.
func TestFlush_Concurrent(t *testing.T) {
	p := startPair(t, nil)
	c := p.client("shop")
	var flushing sync.WaitGroup
	for i := range 6 {
		flushing.Go(func() {
			c.Publish(batch(10, fmt.Sprint(i)))
			if err := c.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	flushing.Wait()
	if b := p.Accounting(); b.Flushed != 60 {
		t.Errorf("accounting after all flushes: %+v", b)
	}
	p.stop()
}

// TestAgent_Recovers uses an agent that refuses payloads for a while: no span may be lost or counted
// twice.
func TestAgent_Recovers(t *testing.T) {
	t.Parallel()
	p := startPair(t, nil)
	var refused atomic.Int32
	p.agent.SetFault(func(r *http.Request) standin.Fault {
		if r.URL.Path == "/info" || refused.Add(1) > 4 {
			return standin.Fault{}
		}
		status := http.StatusServiceUnavailable
		if refused.Load()%2 == 0 {
			status = http.StatusTooManyRequests
		}
		return standin.Fault{Kind: standin.Answer, Status: status}
	})
	c := p.client("shop")
	c.Publish(batch(500, "r"))
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b := p.Accounting(); b.Flushed != 500 || !b.Balanced {
		t.Errorf("accounting after the agent recovered: %+v", b)
	}
	p.stop()
}

// TestAgent_WithoutStatistics checks that tracers are notified, and that spans received later are
// dropped with the right reason.
func TestAgent_WithoutStatistics(t *testing.T) {
	p := startPair(t, nil)
	info := standin.DefaultInfo()
	info.Endpoints = []string{"/v0.4/traces"}
	p.agent.SetInfo(info)
	c := p.client("shop")
	c.Publish(batch(10, "r"))
	_ = c.Flush(t.Context()) // the daemon learns it from the agent's status 404
	eventually.True(t, "the tracer to be notified that no destination accepts spans",
		func() bool { return !c.Features().Stats })
	if c.Publish(batch(10, "r")) {
		t.Error("the client accepted spans that no destination accepts")
	}
	p.stop()
}

// neverEnd sets an interval that started long ago and ends in decades, so that only a request ends a
// cycle.
func neverEnd(config *aggregate.Config) {
	config.BucketWidth = time.Duration(time.Now().UnixNano() / 3 * 2)
	config.FlushInterval = config.BucketWidth
}

// TestDowngrade_DropsAggregates checks that aggregates are dropped immediately when the agent stops accepting
// statistics, not at the end of the cycle.
func TestDowngrade_DropsAggregates(t *testing.T) {
	p := startPair(t, func(c *daemon.Config) { neverEnd(&c.Aggregate) })
	counted := make(chan struct{})
	p.agent.SetFault(func(r *http.Request) standin.Fault {
		if r.URL.Path == "/info" {
			return standin.Fault{}
		}
		<-counted
		return standin.Fault{Kind: standin.Answer, Status: http.StatusNotFound}
	})
	c := p.client("shop")
	c.Publish(batch(100, "before the report"))
	flushed := make(chan error)
	go func() { flushed <- c.Flush(t.Context()) }()
	eventually.True(t, "the report seals", func() bool { return p.Status().Cycle.Sealed > 0 })
	c.Publish(batch(500, "after it"))
	eventually.True(t, "all is aggregated", func() bool { return p.Accounting().Aggregated == 600 })
	close(counted)
	if err := <-flushed; err == nil {
		t.Error("a flush that the agent rejected was reported as delivered")
	}
	eventually.True(t, "nothing is held", func() bool { b := p.Accounting(); return b.Pending == 0 && b.Balanced })
	if seals := p.Status().Cycle.Sealed; seals != 1 {
		t.Errorf("%d seals; the clear was not needed", seals)
	}
	if b := p.Accounting(); b.Unsent != 600 {
		t.Errorf("accounting after the downgrade: %+v", b)
	}
	p.stop()
}

// TestOrigins_ManyUnderLoad has several tracers, interval boundaries and flush requests at the same
// time, with several drainers.
func TestOrigins_ManyUnderLoad(t *testing.T) {
	p := startPair(t, func(c *daemon.Config) { c.Aggregate.Drainers, c.Aggregate.RingSlots = 3, 1<<16 })
	var publishing sync.WaitGroup
	var published atomic.Uint64
	for i := range 6 {
		c := p.client(fmt.Sprint("service-", i))
		publishing.Go(func() {
			for j := range 300 {
				if c.Publish(batch(20, fmt.Sprint(j%40))) {
					published.Add(20)
				}
				if j%100 == 50 {
					if err := c.Flush(t.Context()); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(time.Millisecond)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	publishing.Wait()
	accounting := p.Accounting()
	if accounting.Received != published.Load() || accounting.DroppedTotal() != 0 {
		t.Errorf("received %d of %d, dropped %v", accounting.Received, published.Load(), accounting.Dropped)
	}
	p.stop()
	if hits := p.agent.Totals().Hits; hits != published.Load() {
		t.Errorf("the agent counted %d of %d", hits, published.Load())
	}
}
