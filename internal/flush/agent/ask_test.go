package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/eventually"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/testcycle"
)

// bareAgent answers /info and has each request with a payload meet what a test wants.
type bareAgent struct {
	net.Listener
	meets  atomic.Pointer[conduct]
	mu     sync.Mutex
	bodies []int // lengths of what was read of each request's body, those not empty
}

// conduct is what an agent does with a request whose head was read.
type conduct struct {
	asks, answers bool
	waits         time.Duration // before either
}

var (
	hangs     = conduct{}
	takes     = conduct{asks: true, answers: true}
	neverAsks = conduct{answers: true}
	isSlow    = conduct{asks: true, answers: true, waits: shortPatience * 3 / 2}
)

// onBoth runs a test with an agent behind each kind of address.
func onBoth(t *testing.T, first conduct, test func(t *testing.T, a *bareAgent, client *httpAgent)) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			address := "127.0.0.1:0"
			if network == "unix" {
				address = socketIn(t)
			}
			listener, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			a := &bareAgent{Listener: listener}
			a.becomes(first)
			var serving sync.WaitGroup
			serving.Go(func() { a.serve(&serving) })
			t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
			test(t, a, newHTTPAgent(URL{network, listener.Addr().String()}, "1.0", shortPatience))
		})
	}
}

func (a *bareAgent) becomes(c conduct) { a.meets.Store(&c) }

func (a *bareAgent) serve(serving *sync.WaitGroup) {
	for {
		conn, err := a.Accept()
		if err != nil {
			return
		}
		serving.Go(func() {
			defer conn.Close()
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				a.meet(conn, r)
			}
		})
	}
}

func (a *bareAgent) meet(conn net.Conn, r *http.Request) {
	if r.URL.Path == "/info" {
		const body = `{"endpoints": ["/v0.6/stats"]}`
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return
	}
	does := *a.meets.Load()
	time.Sleep(does.waits)
	if does.asks {
		fmt.Fprint(conn, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	n, err := io.Copy(io.Discard, r.Body) // until the client leaves, where nobody asked
	a.mu.Lock()
	if n > 0 {
		a.bodies = append(a.bodies, int(n))
	}
	a.mu.Unlock()
	if does.answers && err == nil {
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		return
	}
	_, _ = io.Copy(io.Discard, conn)
}

// payloads is how many bodies were read that hold statistics.
func (a *bareAgent) payloads() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, length := range a.bodies {
		if length > len(noStatistics) {
			n++
		}
	}
	return n
}

// shortPatience is enough of it for a test.
const shortPatience = 100 * time.Millisecond

// mustPost offers a payload and wants this to become of it. Who is to take it has the
// time that it needs; who is not need not be waited for.
func mustPost(t *testing.T, client *httpAgent, want flush.Outcome) {
	t.Helper()
	timeout := 6 * shortPatience
	if want == flush.OutcomeAccepted {
		timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if got := client.post(ctx, bodyOf(small)); got.Outcome != want {
		t.Errorf("%+v, want flush.Outcome %d", got, want)
	}
}

// An agent that answers /info and hangs before a payload's body is sent none, however
// often it is offered one and asked what it wants; so each can be tried again. That it
// has asked for bodies before changes nothing.
func TestAgentThatHangsBeforeBodiesIsSentNone(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]conduct{"from the start": hangs, "after it asked": takes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, before, func(t *testing.T, a *bareAgent, client *httpAgent) {
				taken := 0
				if before == takes {
					mustPost(t, client, flush.OutcomeAccepted)
					taken = 1
				}
				a.becomes(hangs)
				for range 3 {
					if _, err := client.info(t.Context()); err != nil {
						t.Fatal(err)
					}
					mustPost(t, client, flush.OutcomeNotYet)
				}
				a.becomes(takes)
				mustPost(t, client, flush.OutcomeAccepted)
				if a.payloads() != taken+1 {
					t.Errorf("%d payloads read, want %d", a.payloads(), taken+1)
				}
			})
		})
	}
}

// The books of a daemon before such an agent: nothing is ambiguous, all waits and then
// expires or is still there when the agent takes bodies.
func TestNothingIsAmbiguousThatNobodyRead(t *testing.T) {
	t.Parallel()
	onBoth(t, hangs, func(t *testing.T, a *bareAgent, client *httpAgent) {
		f, _ := startScripted(t, client, func(c *flush.Config) { c.Timeout, c.RetryAge = 6*shortPatience, 3*time.Second })
		f.Accept(testcycle.Origins(40))
		eventually.True(t, "the first to expire", func() bool { return f.Stats().Unsent[flush.Expired] > 0 })
		a.becomes(takes)
		f.Accept(testcycle.Origins(40))
		eventually.True(t, "all to have an outcome", func() bool { return f.Stats().Held == 0 })
		f.Close(t.Context())
		if s := balanced(t, f, 80); s.Unsent[flush.Ambiguous] != 0 || s.Unsent[flush.Expired]+s.Flushed != 80 || s.Flushed < 40 {
			t.Errorf("stats %+v", s)
		}
	})
}

// An old proxy that never asks for a body gets every payload, and only the first waits.
func TestServerThatNeverAsksGetsEverything(t *testing.T) {
	t.Parallel()
	onBoth(t, neverAsks, func(t *testing.T, a *bareAgent, client *httpAgent) {
		for i := range 5 {
			mustPost(t, client, flush.OutcomeAccepted)
			if now := client.manner.load(); now != asksNever {
				t.Errorf("after payload %d the agent is known as %d", i, now)
			}
		}
		if a.payloads() != 5 || len(a.bodies) != 6 {
			t.Errorf("bodies of %v bytes, want five payloads and one probe", a.bodies)
		}
	})
}

// Whoever takes a payload and never answers has one, which is ambiguous. No other
// follows before it has answered a probe, whether it asks for bodies or not.
func TestAgentThatSwallowsOneGetsNoOther(t *testing.T) {
	t.Parallel()
	for name, well := range map[string]conduct{"asks": takes, "never asks": neverAsks} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, well, func(t *testing.T, a *bareAgent, client *httpAgent) {
				steps := []struct {
					conduct
					want flush.Outcome
				}{{well, flush.OutcomeAccepted}, {conduct{asks: well.asks}, flush.OutcomeUnknown}, {conduct{asks: well.asks}, flush.OutcomeNotYet}, {hangs, flush.OutcomeNotYet}, {well, flush.OutcomeAccepted}}
				for _, step := range steps {
					a.becomes(step.conduct)
					mustPost(t, client, step.want)
				}
				if a.payloads() != 3 {
					t.Errorf("%d payloads read, want 3", a.payloads())
				}
			})
		})
	}
}

// An agent that takes longer than our patience to ask is not taken for one that never does.
func TestSlowAgentIsWaitedFor(t *testing.T) {
	t.Parallel()
	onBoth(t, isSlow, func(t *testing.T, a *bareAgent, client *httpAgent) {
		for range 2 {
			mustPost(t, client, flush.OutcomeAccepted)
			if now := client.manner.load(); now != asksAlways {
				t.Errorf("the agent is known as %d", now)
			}
		}
	})
}

// Another server in the agent's place is found out, without a payload lost on the way.
func TestServerThatNeverAsksInThePlaceOfOneThatDoes(t *testing.T) {
	t.Parallel()
	onBoth(t, takes, func(t *testing.T, a *bareAgent, client *httpAgent) {
		for _, step := range []struct {
			conduct
			want flush.Outcome
		}{{takes, flush.OutcomeAccepted}, {neverAsks, flush.OutcomeNotYet}, {neverAsks, flush.OutcomeAccepted}, {takes, flush.OutcomeAccepted}, {takes, flush.OutcomeAccepted}} {
			a.becomes(step.conduct)
			mustPost(t, client, step.want)
		}
	})
}
