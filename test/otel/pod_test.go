package otel

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/sdkmetrics"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// pod is an application with its SDK and its own daemon.
type pod struct {
	service    string
	url        string // application URL
	daemon     *daemon
	accounting status.Accounting // accounting of the stopped daemon
	sdks       *sdkmetrics.Sums
	stop       func(*testing.T) (wrote string)
}

// start starts an application. The SDK is configured with the daemon's address and the protocol, and
// also writes its spans to standard output. Its queue is longer than the default, so that it loses no
// span on a slow machine.
func (l language) start(t *testing.T, d *daemon, service, protocol string, more ...string) *pod {
	t.Helper()
	command := exec.CommandContext(t.Context(), l.command[0], l.command[1:]...)
	command.Env = append(append(append(command.Environ(),
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://"+d.otlp, "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol,
		"OTEL_SERVICE_NAME="+service, "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none",
		"OTEL_TRACES_EXPORTER=otlp,"+l.also, "OTEL_BSP_MAX_QUEUE_SIZE=100000"), l.env...), more...)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write := io.Pipe()
	command.Stdout, command.Stderr = write, write
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- command.Wait()
		write.Close()
	}()
	said := bufio.NewReader(read)
	p := &pod{service: service, daemon: d, url: listening(t, said)}
	output := make(chan string, 1)
	go func() {
		rest, _ := io.ReadAll(said)
		output <- string(rest)
	}()
	p.stop = func(t *testing.T) string {
		stdin.Close()
		rest, err := <-output, <-ended
		if err != nil {
			t.Errorf("the application ended with %v: %s", err, rest)
		}
		status := d.status(t)
		p.accounting, p.sdks = status.Accounting, status.SDKs
		d.stop()
		return rest
	}
	return p
}

// listening reads an application's output until the application prints its URL.
func listening(t *testing.T, said *bufio.Reader) (url string) {
	t.Helper()
	var before strings.Builder
	for {
		line, err := said.ReadString('\n')
		if port, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on "); ok {
			return "http://127.0.0.1:" + port
		}
		before.WriteString(line)
		if err != nil {
			t.Fatalf("the application ended: %s", before.String())
		}
	}
}

// request sends the given number of requests, a few concurrently.
func (p *pod) request(t *testing.T, requests int) {
	t.Helper()
	const users = 4
	var sending sync.WaitGroup
	for user := range users {
		sending.Go(func() {
			for i := user; i < requests; i += users {
				resp, err := http.Get(fmt.Sprintf("%s/orders/%d", p.url, i))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != int(statuses[i%len(statuses)]) {
					t.Errorf("order %d: %s", i, resp.Status)
				}
			}
		})
	}
	sending.Wait()
}
