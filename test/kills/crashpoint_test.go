package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/built"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// TestKills_AfterAnyStore kills a short-lived daemon after its first store to the recovery file,
// another one after its second store, and so on until a daemon reaches its regular end. Each time, the
// next daemon and the reconnecting clients account for every span. Several lives run in parallel, since
// they mostly wait.
func TestKills_AfterAnyStore(t *testing.T) {
	dir := t.TempDir()
	plain, err := built.Plain(dir, built.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	selfKilling, err := built.KillPoints(filepath.Join(dir, "self-killing"), built.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]bool{plain: false, selfKilling: true} {
		if code, err := os.ReadFile(program); err != nil ||
			bytes.Contains(code, []byte("KILL_AT_STORE")) != want {
			t.Fatalf("%s must have kill points: %t (error %v)", program, want, err)
		}
	}
	var next atomic.Int64
	var isOver atomic.Bool
	var mu sync.Mutex
	all := map[state]uint64{}
	var total loss
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for !isOver.Load() {
				cp := &crashPoint{
					t: t, plain: plain, selfKilling: selfKilling, killAt: int(next.Add(1)),
					wasClosed: map[*message]bool{},
				}
				if !cp.run() {
					isOver.Store(true)
				}
				mu.Lock()
				for _, c := range cp.clients {
					for _, m := range c.messages {
						all[m.state] += m.spans
					}
				}
				total.lost += cp.receiverLoss.lost
				total.ambiguous += cp.receiverLoss.ambiguous
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Logf("%d lives: spans by state %v; received over HTTP: %d lost, %d ambiguous", next.Load(), all, total.lost,
		total.ambiguous)
	if next.Load() < 40 || all[settled] == 0 || all[ambiguous] == 0 || all[connClosed] == 0 || total.lost == 0 {
		t.Error("some states of spans did not occur")
	}
}

// crashPoint is a daemon that kills itself after a given store to its recovery file, and its successor.
type crashPoint struct {
	t                  *testing.T
	plain, selfKilling string
	killAt             int
	dir                string
	agent              *agent
	first              *process
	clients            []*rawClient
	requests           []request
	receiverLoss       loss
	wasClosed          map[*message]bool // messages that were in state connClosed
}

func (cp *crashPoint) errorf(format string, args ...any) {
	cp.t.Errorf("killed at store %d: "+format, append([]any{cp.killAt}, args...)...)
}

// run runs the first life and reports whether its daemon was killed.
func (cp *crashPoint) run() (wasKilled bool) {
	dir, err := os.MkdirTemp("", "w") // short, because socket paths have a limit
	if err != nil {
		cp.errorf("%v", err)
		return false
	}
	defer os.RemoveAll(dir)
	cp.dir = dir
	faults := newFaults(scenario{})
	faults.suspend(true)
	if cp.agent, err = newAgent(faults); err != nil {
		cp.errorf("%v", err)
		return false
	}
	defer cp.agent.close()
	var payloads atomic.Int64
	cp.agent.SetFault(func(r *http.Request) standin.Fault {
		if r.URL.Path != "/v0.6/stats" {
			return standin.Fault{}
		}
		switch payloads.Add(1) {
		case 1:
			return standin.Fault{Kind: standin.Answer, Status: http.StatusServiceUnavailable}
		case 3:
			return standin.Fault{Kind: standin.CloseRead} // the request is accepted, but its response is lost
		}
		return standin.Fault{}
	})
	if cp.first, err = cp.start(cp.selfKilling, cp.killAt); err == nil {
		cp.script()
		wasKilled, err = cp.first.end(syscall.SIGTERM)
	}
	if err == nil {
		err = cp.runSuccessor(wasKilled)
	}
	if err != nil {
		cp.errorf("%v", err)
		return false
	}
	cp.compare(wasKilled)
	return wasKilled
}

func (cp *crashPoint) start(program string, killAt int) (*process, error) {
	p, err := startProcess(exec.Command(program,
		"run", "--socket="+filepath.Join(cp.dir, "s"), "--http-addr=127.0.0.1:0", "--log-format=json",
		"--agent-url="+cp.agent.URL(), "--apm-socket="+filepath.Join(cp.dir, fmt.Sprint("apm", killAt)),
		"--flush-interval=10s", "--mask-names=never", "--buffer=block"),
		fmt.Sprint("store ", cp.killAt), killAt, func([]byte) {})
	if err != nil {
		return nil, err
	}
	if err = p.wait(); p.hasEnded() {
		err = nil // a store during startup
	}
	return p, err
}

// script runs the clients of the first life: two stay connected and two disconnect, over three flush
// cycles.
func (cp *crashPoint) script() {
	first, second := cp.client("connected"), cp.client("also-connected")
	first.publish(1)
	second.publish(2)
	cp.client("disconnects").publish(4)
	cp.clients[2].disconnect()
	cp.request(8)
	cp.settle(first)
	first.publish(16)
	second.publish(32)
	first.publish(64)
	cp.client("disconnects-too").publish(128)
	cp.clients[3].disconnect()
	cp.request(256)
	cp.settle(second)
	second.publish(512)
	cp.request(1024)
}

// client creates a client and connects it if the daemon is alive.
func (cp *crashPoint) client(name string) *rawClient {
	c := &rawClient{name: name, socket: filepath.Join(cp.dir, "s")}
	cp.clients = append(cp.clients, c)
	_ = c.connect() // fails if the daemon has been killed
	return c
}

func (cp *crashPoint) request(spans uint64) {
	r := request{slot: slot{"apm", fmt.Sprint("GET /r/", spans)}, spans: spans}
	if r.send("apm", filepath.Join(cp.dir, fmt.Sprint("apm", cp.killAt))) {
		cp.requests = append(cp.requests, r)
	}
}

// settle requests a flush and waits until all messages of the client are settled or the daemon is dead.
func (cp *crashPoint) settle(c *rawClient) {
	c.requestFlush()
	for deadline := time.Now().Add(time.Minute); c.isOpen() && !cp.first.hasEnded(); {
		time.Sleep(5 * time.Millisecond)
		if time.Now().After(deadline) {
			cp.errorf("%s is not settled within a minute", c.name)
			return
		}
	}
}

// runSuccessor starts the next daemon, waits until all clients have reconnected, and shuts it down
// gracefully.
func (cp *crashPoint) runSuccessor(wasKilled bool) error {
	for _, c := range cp.clients {
		if ended := c.ended; ended != nil {
			<-ended
		}
	}
	// a daemon that shuts down tries each destination once
	cp.agent.SetFault(func(*http.Request) standin.Fault { return standin.Fault{} })
	next, err := cp.start(cp.plain, 0)
	if err != nil {
		return err
	}
	for _, c := range cp.clients {
		if wasKilled || c.isOpen() && !c.hasDisconnected {
			err = c.connect()
		}
		if err != nil {
			return fmt.Errorf("reconnect: %cp", err)
		}
	}
	status, err := next.status()
	if err != nil {
		return err
	}
	if status.LostToCrashes.Unknown > 0 && cp.killAt > 1 {
		cp.errorf("the losses of %d crashed daemons are unknown", status.LostToCrashes.Unknown)
	}
	socket, apm := status.LostToCrashes.Receivers["socket"], status.LostToCrashes.Receivers["apm"]
	cp.receiverLoss = loss{lost: apm.Lost, ambiguous: apm.Ambiguous}
	cp.compareDisconnected(wasKilled, socket.Lost, socket.Ambiguous, status.LostToCrashes.Awaited)
	_, err = next.end(syscall.SIGTERM)
	cp.waitForEnds()
	return err
}

// waitForEnds waits until all clients have read the outcome of their last connection.
func (cp *crashPoint) waitForEnds() {
	for _, c := range cp.clients {
		if c.ended != nil {
			<-c.ended
		}
	}
}

// compareDisconnected compares the losses that the next daemon reports for connections closed by their
// clients with the spans missing at the agent. A kill while a connection is closing can count its
// spans in both. All other clients have reconnected, including those that received a bye.
func (cp *crashPoint) compareDisconnected(wasKilled bool, lost, ambiguous, awaited uint64) {
	if awaited > 0 {
		cp.errorf("%d spans are awaited from clients that have reconnected", awaited)
	}
	counted, missing, both := cp.agent.count(), uint64(0), uint64(0)
	for _, c := range cp.clients {
		c.mu.Lock()
		for _, m := range c.messages {
			if m.state == connClosed {
				cp.wasClosed[m] = true
				missing += m.spans - counted[m.slot]
			}
			switch hasDisconnected := strings.HasPrefix(c.name, "disconnects"); {
			case wasKilled && m.state == connClosed && !hasDisconnected:
				cp.errorf("the next daemon reports no outcome for %d spans of %s", m.spans, c.name)
			case m.state != connClosed && hasDisconnected:
				both += m.spans
			}
		}
		c.mu.Unlock()
	}
	if missing+both < lost || missing > lost+ambiguous {
		cp.errorf("%d spans of disconnected clients are missing: the next daemon reports %d lost, %d ambiguous", missing,
			lost, ambiguous)
	}
}

// compare compares the outcomes reported to the clients with the spans that the agent has counted.
func (cp *crashPoint) compare(wasKilled bool) {
	counted := cp.agent.count()
	for _, c := range cp.clients {
		for _, outcome := range c.invalidOutcomes {
			cp.errorf("%s: %s", c.name, outcome)
		}
		for _, m := range c.messages {
			got := counted[m.slot]
			isValid := got == m.spans
			switch m.state {
			case ambiguous:
				isValid = isValid || got == 0
			case connClosed:
				isValid = isValid || got == 0 && wasKilled && cp.wasClosed[m]
			case written:
				isValid = isValid && (c.receivedBye || c.hasDisconnected && !wasKilled)
			case unsent, unknown:
				isValid = false
			}
			if !isValid {
				cp.errorf("%s of %s: the agent counted %d of %d spans, state %v", m.name, c.name, got, m.spans,
					m.state)
			}
		}
	}
	losses := []loss{{receiver: "apm", lost: cp.receiverLoss.lost, ambiguous: cp.receiverLoss.ambiguous}}
	printf := func(format string, args ...any) { cp.errorf(format, args...) }
	v := compareReceiver("apm", cp.requests, losses, map[string]counts{"agent": counted}, printf)
	if v.Twice > 0 || v.Reported != v.Missing {
		cp.errorf("receiver apm: %v", v)
	}
}
