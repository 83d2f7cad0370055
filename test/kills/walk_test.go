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
	tagged, err := built.KillPoints(filepath.Join(dir, "tagged"), built.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]bool{plain: false, tagged: true} {
		if code, err := os.ReadFile(program); err != nil ||
			bytes.Contains(code, []byte("KILL_AT_STORE")) != want {
			t.Fatalf("%s has kill points: not %t (%v)", program, want, err)
		}
	}
	var next atomic.Int64
	var isOver atomic.Bool
	var mu sync.Mutex
	all := map[fate]uint64{}
	var named loss
	var walking sync.WaitGroup
	for range 6 {
		walking.Go(func() {
			for !isOver.Load() {
				w := &walk{
					t: t, plain: plain, tagged: tagged, killAt: int(next.Add(1)),
					hadLeft: map[*message]bool{},
				}
				if !w.run() {
					isOver.Store(true)
				}
				mu.Lock()
				for _, c := range w.clients {
					for _, m := range c.messages {
						all[m.fate] += m.spans
					}
				}
				named.lost += w.named.lost
				named.ambiguous += w.named.ambiguous
				mu.Unlock()
			}
		})
	}
	walking.Wait()
	t.Logf("%d lives: spans by fate %v, of the doors named %d lost, %d ambiguous", next.Load(), all,
		named.lost,
		named.ambiguous)
	if next.Load() < 40 || all[settled] == 0 || all[ambiguous] == 0 || all[left] == 0 || named.lost == 0 {
		t.Error("not all that can become of a span did")
	}
}

// walk is one life and the life after it.
type walk struct {
	t             *testing.T
	plain, tagged string
	killAt        int
	dir           string
	agent         *agent
	first         *process
	clients       []*rawClient
	requests      []request
	named         loss
	hadLeft       map[*message]bool // messages of clients that left the first daemon
}

func (w *walk) errorf(format string, args ...any) {
	w.t.Errorf("killed at store %d: "+format, append([]any{w.killAt}, args...)...)
}

// run runs the first life and reports whether its daemon was killed.
func (w *walk) run() (wasKilled bool) {
	dir, err := os.MkdirTemp("", "w") // a short one, for sockets
	if err != nil {
		w.errorf("%v", err)
		return false
	}
	defer os.RemoveAll(dir)
	w.dir = dir
	moods := newMoods(scenario{})
	moods.calm(true)
	if w.agent, err = newAgent(moods); err != nil {
		w.errorf("%v", err)
		return false
	}
	defer w.agent.close()
	var payloads atomic.Int64
	w.agent.SetFault(func(r *http.Request) standin.Fault {
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
	if w.first, err = w.start(w.tagged, w.killAt); err == nil {
		w.script()
		wasKilled, err = w.first.end(syscall.SIGTERM)
	}
	if err == nil {
		err = w.after(wasKilled)
	}
	if err != nil {
		w.errorf("%v", err)
		return false
	}
	w.judge(wasKilled)
	return wasKilled
}

func (w *walk) start(program string, killAt int) (*process, error) {
	p, err := startProcess(exec.Command(program,
		"run", "--socket="+filepath.Join(w.dir, "s"), "--http-addr=127.0.0.1:0", "--log-format=json",
		"--agent-url="+w.agent.URL(), "--apm-socket="+filepath.Join(w.dir, fmt.Sprint("apm", killAt)),
		"--flush-interval=10s", "--mask-names=never", "--buffer=block"),
		fmt.Sprint("store ", w.killAt), killAt, func([]byte) {})
	if err != nil {
		return nil, err
	}
	if err = p.wait(); p.hasEnded() {
		err = nil // a store during startup
	}
	return p, err
}

// script runs the clients of the first life: two stay and two leave, over three flush cycles.
func (w *walk) script() {
	stays, alsoStays := w.client("stays"), w.client("also-stays")
	stays.publish(1)
	alsoStays.publish(2)
	w.client("leaves").publish(4)
	w.clients[2].leave()
	w.request(8)
	w.settle(stays)
	stays.publish(16)
	alsoStays.publish(32)
	stays.publish(64)
	w.client("leaves-too").publish(128)
	w.clients[3].leave()
	w.request(256)
	w.settle(alsoStays)
	alsoStays.publish(512)
	w.request(1024)
}

// client creates a client and connects it if the daemon is alive.
func (w *walk) client(name string) *rawClient {
	c := &rawClient{name: name, socket: filepath.Join(w.dir, "s")}
	w.clients = append(w.clients, c)
	_ = c.connect() // fails if the daemon has been killed
	return c
}

func (w *walk) request(spans uint64) {
	r := request{slot: slot{"apm", fmt.Sprint("GET /r/", spans)}, spans: spans}
	if r.send("apm", filepath.Join(w.dir, fmt.Sprint("apm", w.killAt))) {
		w.requests = append(w.requests, r)
	}
}

// settle requests a flush and waits until all messages of the client are settled or the daemon is dead.
func (w *walk) settle(c *rawClient) {
	c.report()
	for deadline := time.Now().Add(time.Minute); c.isOpen() && !w.first.hasEnded(); {
		time.Sleep(5 * time.Millisecond)
		if time.Now().After(deadline) {
			w.errorf("%s is not settled within a minute", c.name)
			return
		}
	}
}

// after starts the next daemon, waits until all clients have reconnected, and shuts it down gracefully.
func (w *walk) after(wasKilled bool) error {
	for _, c := range w.clients {
		if conn := c.ended; conn != nil {
			<-conn
		}
	}
	// a daemon that shuts down tries each destination once
	w.agent.SetFault(func(*http.Request) standin.Fault { return standin.Fault{} })
	next, err := w.start(w.plain, 0)
	if err != nil {
		return err
	}
	for _, c := range w.clients {
		if wasKilled || c.isOpen() && !c.hasLeft {
			err = c.connect()
		}
		if err != nil {
			return fmt.Errorf("come back: %w", err)
		}
	}
	status, err := next.status()
	if err != nil {
		return err
	}
	if status.LostToCrashes.Unknown > 0 && w.killAt > 1 {
		w.errorf("nobody knows what %d daemons took with them", status.LostToCrashes.Unknown)
	}
	socket, apm := status.LostToCrashes.Receivers["socket"], status.LostToCrashes.Receivers["apm"]
	w.named = loss{lost: apm.Lost, ambiguous: apm.Ambiguous}
	w.judgeLeft(wasKilled, socket.Lost, socket.Ambiguous, status.LostToCrashes.Awaited)
	_, err = next.end(syscall.SIGTERM)
	w.waitForEnds()
	return err
}

// waitForEnds waits until all clients have read the outcome of their last connection.
func (w *walk) waitForEnds() {
	for _, c := range w.clients {
		if c.ended != nil {
			<-c.ended
		}
	}
}

// judgeLeft compares the losses that the next daemon reports for connections closed by their clients
// with the spans missing at the agent. A kill while a connection is closing can count its spans in
// both. All other clients have reconnected, including those that received a bye.
func (w *walk) judgeLeft(wasKilled bool, lost, maybe, awaited uint64) {
	if awaited > 0 {
		w.errorf("%d spans are awaited of clients that are back", awaited)
	}
	counted, missing, both := w.agent.count(), uint64(0), uint64(0)
	for _, c := range w.clients {
		c.mu.Lock()
		for _, m := range c.messages {
			if m.fate == left {
				w.hadLeft[m] = true
				missing += m.spans - counted[m.slot]
			}
			switch hasLeft := strings.HasPrefix(c.name, "leaves"); {
			case wasKilled && m.fate == left && !hasLeft:
				w.errorf("the next daemon says nothing of %d spans of %s", m.spans, c.name)
			case m.fate != left && hasLeft:
				both += m.spans
			}
		}
		c.mu.Unlock()
	}
	if missing+both < lost || missing > lost+maybe {
		w.errorf("of clients that had left %d spans are missing: it names %d lost, %d ambiguous", missing,
			lost, maybe)
	}
}

// judge compares the outcomes reported to the clients with the spans that the agent has counted.
func (w *walk) judge(wasKilled bool) {
	counted := w.agent.count()
	for _, c := range w.clients {
		for _, wrong := range c.wrong {
			w.errorf("%s: %s", c.name, wrong)
		}
		for _, m := range c.messages {
			got := counted[m.slot]
			isOne := got == m.spans
			switch m.fate {
			case ambiguous:
				isOne = isOne || got == 0
			case left:
				isOne = isOne || got == 0 && wasKilled && w.hadLeft[m]
			case given:
				isOne = isOne && (c.heardBye || c.hasLeft && !wasKilled)
			case waits, unknown:
				isOne = false
			}
			if !isOne {
				w.errorf("%s of %s is %d times %d at the agent, with fate %d", m.name, c.name, got, m.spans,
					m.fate)
			}
		}
	}
	named := []loss{{door: "apm", lost: w.named.lost, ambiguous: w.named.ambiguous}}
	say := func(format string, args ...any) { w.errorf(format, args...) }
	v := judgeDoor("apm", w.requests, named, map[string]counts{"agent": counted}, say)
	if v.Twice > 0 || v.Named != v.Missing {
		w.errorf("the door: %v", v)
	}
}
