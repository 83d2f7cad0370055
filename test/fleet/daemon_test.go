package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// daemon is a daemon process built from this repository, with its connected tracers, one per origin.
type daemon struct {
	*process
	http    string
	host    string
	clients []*client.Client

	published uint64 // number of published spans
}

// startDaemon starts a daemon for the pods of a host. Each pod is an origin.
func startDaemon(t *testing.T, host string, pods int, args ...string) *daemon {
	t.Helper()
	return startDaemonAt(t, freeAddress(t), host, pods, args...)
}

// startDaemonAt is startDaemon with a listen address, which a previous daemon can have used.
func startDaemonAt(t *testing.T, address, host string, pods int, args ...string) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "fl") // short, because a socket's path must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &daemon{http: address, host: host}
	socket := filepath.Join(dir, "s")
	d.process = start(t, host, nil, append([]string{
		program(t, "spanstatsd"), "run", "--socket", socket, "--http-addr", d.http, "--agent-url", "off",
		"--flush-interval", "1s", "--mask-names=never",
	}, args...)...)
	d.listens(d.http)
	for pod := range pods {
		c, err := client.Open(client.Config{
			Socket: socket, Origin: d.origin(pod), BufferBytes: 256 << 10,
			MaxAge: 10 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ended, end := context.WithCancel(context.Background())
			end()
			_ = c.Close(ended)
		})
		d.clients = append(d.clients, c)
	}
	return d
}

// services is less than the number of pods, so that several pods differ only in their identity.
const services = 20

func (d *daemon) origin(pod int) client.Origin {
	return client.Origin{
		Host: d.host, Service: fmt.Sprint("shop-", pod%services), Env: "prod", Version: "1.2.3", Lang: "go",
		ContainerID: fmt.Sprintf("%s-container-%d", d.host, pod),
	}
}

func (d *daemon) origins() int { return len(d.clients) }

// publish publishes spans with the tracers of their origins.
func (d *daemon) publish(spans []loadedSpan) error {
	batches := make([][]client.Snapshot, len(d.clients))
	for _, s := range spans {
		key := s.shape.key
		key.Service = d.origin(s.origin).Service
		batches[s.origin] = append(batches[s.origin], client.Snapshot{
			Key: key, Duration: s.duration, End: time.Now(), Error: s.shape.isError, TopLevel: true,
		})
	}
	for pod, batch := range batches {
		if len(batch) > 0 && !d.clients[pod].Publish(batch) {
			return fmt.Errorf("pod %d: the client refused spans: %+v", pod, d.clients[pod].Stats())
		}
	}
	d.published += uint64(len(spans))
	return nil
}

// name returns the name of the series for a span in the dialect spanmetrics.
func (d *daemon) name(s *loadedSpan) string {
	o := d.origin(s.origin)
	return series(map[string]string{
		"job": o.Service, "host_name": o.Host, "container_id": o.ContainerID,
		"span_name": s.shape.name, "span_kind": s.shape.kind, "status_code": s.shape.status(),
	})
}

// hands waits until the tracers have written all their spans to the daemon.
func (d *daemon) hands(t *testing.T) {
	t.Helper()
	for _, c := range d.clients {
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// counted returns the sum of a counter in /metrics over all lines with the given destination and, if
// not empty, the given reason.
func (d *daemon) counted(name, destination, reason string) (sum uint64) {
	d.t.Helper()
	response, err := http.Get("http://" + d.http + "/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	isThere := false
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		labels, value, _ := strings.Cut(lines.Text(), "} ")
		if !strings.HasPrefix(labels, "spanstatsd_"+name+"{") ||
			!strings.Contains(labels, fmt.Sprintf("destination=%q", destination)) ||
			reason != "" && !strings.Contains(labels, fmt.Sprintf("reason=%q", reason)) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			d.t.Fatalf("%s: %v", lines.Text(), err)
		}
		isThere, sum = true, sum+uint64(n)
	}
	if !isThere {
		d.t.Fatalf("no %s of %s for %q in /metrics", name, destination, reason)
	}
	return sum
}

// accounting is the daemon's accounting of all spans.
type accounting struct {
	Received, Aggregated, Flushed, Unsent, Pending uint64
	Balanced                                       bool
}

func (d *daemon) accounting() accounting {
	d.t.Helper()
	response, err := http.Get("http://" + d.http + "/status")
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	var status struct{ Accounting accounting }
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		d.t.Fatal(err)
	}
	return status.Accounting
}

// mustBalance checks that the given number of spans was received and that all of them were delivered.
func (d *daemon) mustBalance(spans uint64) {
	d.t.Helper()
	if b := d.accounting(); !b.Balanced || b.Received != spans || b.Flushed != spans || b.Unsent != 0 {
		d.t.Errorf("%s: the accounting of %d spans: %+v", d.host, spans, b)
	}
}
