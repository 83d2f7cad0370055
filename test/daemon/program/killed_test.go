package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// awaitStartOfInterval waits until most of an export interval of ten seconds remains, so that the daemon is killed before
// it exports anything.
func awaitStartOfInterval() {
	for time.Now().Unix()%10 > 2 {
		time.Sleep(100 * time.Millisecond)
	}
}

// TestKill_SuccessorKnowsOutcomes kills a daemon before a payload, while one is in flight,
// after its response, and during a shutdown after the bye message, as at the end of a grace period. The
// next daemon must report the outcome to a reconnecting client, the one after that must report the
// same, and spans received over HTTP must be counted as lost.
func TestKill_SuccessorKnowsOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		report     bool // flush requested before the kill
		agentHangs bool // the agent hangs with the payload
		stops      bool // shutdown requested before the kill
		earlier    string
		apm        [2]float64 // expected lost and ambiguous spans
	}{
		"before the payload": {earlier: "[0 0 3 2]", apm: [2]float64{5, 0}},
		"payload in flight":  {report: true, agentHangs: true, earlier: "[0 0 3 1]", apm: [2]float64{0, 5}},
		"payload accepted":   {report: true, earlier: "[3 0]"},
		"during a shutdown":  {stops: true, agentHangs: true, earlier: "[0 0 3 1]", apm: [2]float64{0, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sockets(t)
			agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
			arrived := make(chan struct{}, 10)
			over := make(chan struct{})
			defer close(over)
			agent.SetFault(func(r *http.Request) standin.Fault {
				if c.agentHangs && r.URL.Path == "/v0.6/stats" {
					arrived <- struct{}{}
					<-over
				}
				return standin.Fault{}
			})
			socket, apm := filepath.Join(dir, "s"), filepath.Join(dir, "apm")
			start := func() *process {
				return daemonProcess(t, agent.URL(), socket, "--apm-socket", apm)
			}
			if !c.report && !c.stops {
				awaitStartOfInterval()
			}
			first := start()
			conn, welcome := greet(t, socket, "")
			if welcome.Token == "" || welcome.Earlier != nil {
				t.Fatalf("welcome message %+v", welcome)
			}
			if _, err := conn.Write(threeSpans()); err != nil {
				t.Fatal(err)
			}
			putTraces(t, apm, tracesOf(t, 7, 5))
			eventually.True(t, "all is counted", func() bool {
				return metric(first.get("/metrics"), "spanstatsd_spans_received_total") == 8
			})
			if c.report {
				if _, err := conn.Write(wire.AppendFlush(nil, &wire.Flush{ID: 1})); err != nil {
					t.Fatal(err)
				}
				if c.agentHangs {
					<-arrived
				} else {
					settledOf(t, conn, 3)
				}
			}
			if c.stops {
				if err := first.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				for kind := wire.Type(0); kind != wire.TypeBye; {
					kind, _ = read(t, conn)
				}
				<-arrived
			}
			if err := first.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			first.exit()
			for range 2 {
				next := start()
				metrics := next.get("/metrics")
				conn, welcome := greet(t, socket, welcome.Token)
				if got := fmt.Sprint(welcome.Earlier); got != c.earlier {
					t.Errorf("outcome of 3 spans at the next daemon: %s, want %s", got, c.earlier)
				}
				for i, reason := range []string{"lost", "ambiguous"} {
					by := `spanstatsd_spans_lost_to_crashes_total{reason="` + reason + `",receiver="apm"}`
					if got := metric(metrics, by); got != c.apm[i] {
						t.Errorf("%s is %g, want %g", by, got, c.apm[i])
					}
				}
				if awaiting := metric(next.get("/metrics"), "spanstatsd_spans_awaiting_replay"); awaiting != 0 {
					t.Errorf("%g spans are still awaiting replay of a reconnected client", awaiting)
				}
				conn.Close()
				eventually.True(t, "the recovery file to be marked as reported", func() bool {
					files, _ := filepath.Glob(socket + ".running-*")
					return slices.ContainsFunc(files, isReported)
				})
				c.apm = [2]float64{} // all spans are counted
				if err := next.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				next.exit()
			}
		})
	}
}

// TestKill_WhileSuccessorRuns kills a daemon that is still shutting down when its successor already runs. A client
// that asks the successor gets no outcome before the kill, the true one afterwards, and the successor reports the
// crash.
func TestKill_WhileSuccessorRuns(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	arrived, over := make(chan struct{}, 10), make(chan struct{})
	defer close(over)
	agent.SetFault(func(r *http.Request) standin.Fault {
		if r.URL.Path == "/v0.6/stats" {
			arrived <- struct{}{}
			<-over
		}
		return standin.Fault{}
	})
	socket, apm := filepath.Join(dir, "s"), filepath.Join(dir, "apm")
	start := func() *process {
		return daemonProcess(t, agent.URL(), socket, "--apm-socket", apm, "--shutdown-grace=1m")
	}
	first := start()
	conn, welcome := greet(t, socket, "")
	if _, err := conn.Write(threeSpans()); err != nil {
		t.Fatal(err)
	}
	putTraces(t, apm, tracesOf(t, 7, 5))
	eventually.True(t, "all is counted", func() bool {
		return metric(first.get("/metrics"), "spanstatsd_spans_received_total") == 8
	})
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for kind := wire.Type(0); kind != wire.TypeBye; {
		kind, _ = read(t, conn)
	}
	<-arrived
	next := start()
	kind, body := read(t, ask(t, socket, welcome.Token))
	if bye, err := wire.DecodeBye(body); kind != wire.TypeBye || err != nil || bye.Reason != "earlier_pending" {
		t.Errorf("before the kill the successor sends %s %+v: %v", kind, bye, err)
	}
	asking := ask(t, socket, welcome.Token)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.exit()
	kind, body = read(t, asking)
	response, err := wire.DecodeWelcome(body)
	if got := fmt.Sprint(response.Earlier); kind != wire.TypeWelcome || err != nil || got != "[0 0 3 1]" {
		t.Errorf("after the kill the successor sends %s with outcome %s: %v", kind, got, err)
	}
	const ambiguous = `spanstatsd_spans_lost_to_crashes_total{reason="ambiguous",receiver="apm"}`
	eventually.True(t, "the loss is counted", func() bool {
		metrics := next.get("/metrics")
		return metric(metrics, ambiguous) == 5 && metric(metrics, "spanstatsd_crashed_predecessors") == 1 &&
			metric(metrics, "spanstatsd_spans_awaiting_replay") == 0
	})
	if err := next.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	next.exit()
}

// isReported reports whether a daemon has noted in the recovery file of a predecessor that it has reported the
// crash: its fourth word is not zero.
func isReported(file string) bool {
	content, err := os.ReadFile(file)
	return err == nil && len(content) >= 32 && binary.NativeEndian.Uint64(content[24:]) != 0
}

func threeSpans() []byte {
	key := wire.AppendKey(nil, &span.Key{Service: "shop", Operation: "op", Resource: "r"})
	frames := wire.BeginSpans(nil)
	for range 3 {
		frames = wire.AppendWhole(frames, key, 1000, time.Now().UnixNano(), span.TopLevel, 1)
	}
	wire.EndSpans(frames, 0, 3)
	return frames
}

// greet connects as a client that asks for the outcome of an earlier connection.
func greet(t *testing.T, socket, earlier string) (net.Conn, wire.Welcome) {
	t.Helper()
	conn := ask(t, socket, earlier)
	kind, body := read(t, conn)
	welcome, err := wire.DecodeWelcome(body)
	if err != nil || kind != wire.TypeWelcome {
		t.Fatalf("%v, %s", err, kind)
	}
	return conn, welcome
}

// ask connects, and sends the hello of a client that asks for the outcome of an earlier connection.
func ask(t *testing.T, socket, earlier string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	hello := wire.Hello{
		Version: wire.Version, Origin: span.Origin{Service: "shop"}, Settled: true, Earlier: earlier,
	}
	if _, err := conn.Write(wire.AppendHello(nil, &hello)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func read(t *testing.T, conn net.Conn) (wire.Type, []byte) {
	t.Helper()
	header := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(conn, header); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, wire.FrameLength(header))
	if _, err := io.ReadFull(conn, message); err != nil {
		t.Fatal(err)
	}
	kind, body, err := wire.Split(message)
	if err != nil {
		t.Fatal(err)
	}
	return kind, body
}

// settledOf reads until the given number of spans of the connection is settled.
func settledOf(t *testing.T, conn net.Conn, spans uint64) {
	t.Helper()
	for {
		if kind, body := read(t, conn); kind == wire.TypeFeatures {
			features, err := wire.DecodeFeatures(body)
			if err != nil {
				t.Fatal(err)
			}
			if features.Settled >= spans {
				return
			}
		}
	}
}

func putTraces(t *testing.T, socket string, body []byte) {
	t.Helper()
	to := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn,
		error,
	) {
		return net.Dial("unix", socket)
	}}}
	r, err := http.NewRequest(http.MethodPut, "http://agent/v0.4/traces", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/msgpack")
	r.Header.Set("X-Datadog-Trace-Count", "5")
	response, err := to.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
}
