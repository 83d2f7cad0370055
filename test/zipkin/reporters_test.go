//go:build languages

package zipkin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// program is the daemon binary, built once; reporters is the directory of the installed reporters.
var program, reporters = "", os.Getenv("ZIPKIN_DIR")

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "zipkin")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "spanstatsd")
	build := exec.Command("go", "build", "-o", program, "./cmd/spanstatsd")
	build.Dir, build.Stderr = "../..", os.Stderr
	if err := build.Run(); err != nil {
		panic("build the daemon: " + err.Error())
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// counts are spans and errors by service, kind, name and peer.
type counts map[string][2]uint64

// daemon is a running daemon with an agent and an upstream Zipkin.
type daemon struct {
	url  string // URL to report spans to
	stop func() counts

	mu       sync.Mutex
	counted  counts
	requests int
	bytes    int // total length of forwarded bodies
}

// start starts the daemon on free ports. The upstream Zipkin accepts every request.
func start(t *testing.T) *daemon {
	t.Helper()
	d := &daemon{counted: counts{}}
	agent, err := standin.Start(standin.Config{
		Network: "tcp", Address: "127.0.0.1:0", OnPayload: func(r standin.Received) {
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, bucket := range r.Payload.Stats {
				for _, g := range bucket.Stats {
					key := fmt.Sprintf("%s %s %s %v", g.Service, g.SpanKind, g.Resource, g.PeerTags)
					d.counted[key] = [2]uint64{d.counted[key][0] + g.Hits, d.counted[key][1] + g.Errors}
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		d.requests, d.bytes = d.requests+1, d.bytes+len(body)
		d.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(behind.Close)
	cmd := exec.Command(program, "run", "--socket", filepath.Join(t.TempDir(), "s"), "--agent-url",
		agent.URL(),
		"--http-addr", "127.0.0.1:0", "--zipkin-addr", "127.0.0.1:0", "--zipkin-forward", behind.URL,
		"--log-format", "json", "--shutdown-grace", "30s")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	t.Cleanup(end)
	lines := bufio.NewScanner(log)
	for d.url == "" && lines.Scan() {
		var line struct{ Msg, Addr string }
		_ = json.Unmarshal(lines.Bytes(), &line)
		if line.Msg == "receiving Zipkin" {
			d.url = "http://" + line.Addr + "/api/v2/spans"
		}
	}
	if d.url == "" {
		t.Fatal("the daemon does not say where it takes Zipkin")
	}
	go func() {
		for lines.Scan() { // read everything, so that the daemon never blocks on its log
		}
	}()
	d.stop = func() counts {
		end()
		d.mu.Lock()
		defer d.mu.Unlock()
		return maps.Clone(d.counted)
	}
	return d
}

// TestReporters checks that each span of each reporter and encoding is counted and forwarded.
func TestReporters(t *testing.T) {
	const requests = 300
	want := counts{
		"front client GET [peer.service:cart]": {requests, 0},
		"cart server GET /cart/{id} []":        {requests, requests / 10},
	}
	for name, command := range map[string][]string{
		"Brave":     {"java", "-cp", reporters + "/java/classes:" + reporters + "/java/jars/*", "Report"},
		"py_zipkin": {reporters + "/python/bin/python", "reporters/report.py"},
	} {
		for _, encoding := range []string{"json", "protobuf"} {
			t.Run(name+" "+encoding, func(t *testing.T) {
				d := start(t)
				deadline := time.AfterFunc(2*time.Minute, func() {
					panic(name + " has not ended in two minutes")
				})
				defer deadline.Stop()
				report := exec.Command(command[0],
					append(command[1:], d.url, encoding, fmt.Sprint(requests))...)
				var said bytes.Buffer
				report.Stdout, report.Stderr = &said, &said
				if err := report.Run(); err != nil {
					t.Fatalf("%v\n%s", err, said.Bytes())
				}
				if got := d.stop(); !maps.Equal(got, want) {
					t.Errorf("counted %v, want %v\n%s", got, want, said.Bytes())
				}
				t.Logf("%d requests of %d bytes have gone on", d.requests, d.bytes)
				if d.requests == 0 {
					t.Error("nothing has gone on")
				}
			})
		}
	}
}
