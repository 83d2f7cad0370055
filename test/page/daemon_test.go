//go:build browser

package page

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// hostile lists labels that would act as markup if not escaped, or reverse the rest of the line if not
// isolated.
var hostile = []string{
	`<img src=x onerror=alert(1)>`, `</script><script>alert(1)</script>`, `"><svg onload=alert(1)>`,
	"\u202egnihton si siht", `{{constructor.constructor('alert(1)')()}}`, `javascript:alert(1)`,
	"a\x00b\x1b[2J",
}

// startDaemon builds the program and starts it with an agent that has the given fault, if any, and with
// additional flags. It returns the HTTP address and the socket.
func startDaemon(t *testing.T, fault func(*http.Request) standin.Fault, flags ...string) (address, socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return startDaemonIn(t, dir, fault, flags...)
}

// startDaemonIn is startDaemon with the socket s in the given directory, which can contain files of
// previous daemons.
func startDaemonIn(t *testing.T, dir string, fault func(*http.Request) standin.Fault, flags ...string) (address,
	socket string,
) {
	t.Helper()
	binary := filepath.Join(dir, "spanstatsd")
	build := exec.Command("go", "build", "-o", binary, "./cmd/spanstatsd")
	build.Dir = "../.." // uses the dependencies of the daemon's module
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the daemon: %v\n%s", err, out)
	}
	agent, err := standin.Start(standin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	agent.SetFault(fault)
	t.Cleanup(func() { agent.Close() })
	socket = filepath.Join(dir, "s")
	daemon := exec.Command(binary, append([]string{
		"run", "--socket", socket, "--http-addr", "127.0.0.1:0",
		"--flush-interval", "2s", "--log-format", "json", "--drainers", "fixed:2",
	}, flags...)...)
	daemon.Env = append(os.Environ(), "DD_TRACE_AGENT_URL="+agent.URL(),
		"SPANSTATSD_CARDINALITY_LIMIT=http_endpoint=3")
	log, err := daemon.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		if err := daemon.Wait(); err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, HTTP string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.HTTP != "" {
			go func() {
				for lines.Scan() { // so that the daemon never blocks on its log
				}
			}()
			return line.HTTP, socket
		}
		t.Log(lines.Text())
	}
	t.Fatal("the daemon did not log its address")
	return "", ""
}

// A route of the small shop that generates the load.
type route struct {
	operation, resource, kind string
	share, failsOne           int
	typical                   time.Duration
}

var shop = map[string][]route{
	"front-end": {
		{"http.request", "GET /", "server", 40, 0, 12 * time.Millisecond},
		{"http.request", "GET /product/{id}", "server", 25, 400, 26 * time.Millisecond},
		{"http.request", "POST /checkout", "server", 5, 30, 410 * time.Millisecond},
		{"redis.command", "MGET", "client", 45, 0, 620 * time.Microsecond},
	},
	"cart": {
		{"http.request", "POST /items", "server", 14, 90, 22 * time.Millisecond},
		{"postgres.query", "INSERT INTO item VALUES (?, ?, ?)", "client", 14, 0, 5 * time.Millisecond},
	},
	"payments": {
		{"http.request", "POST /charge", "server", 5, 18, 380 * time.Millisecond},
		{"kafka.produce", "orders.created", "producer", 5, 0, 2 * time.Millisecond},
	},
	"orders": {
		{"kafka.consume", "orders.created", "consumer", 5, 60, 55 * time.Millisecond},
		{
			"postgres.query", "UPDATE stock SET count = count - ? WHERE product = ?", "client", 9, 0,
			7 * time.Millisecond,
		},
	},
}

// load publishes the spans of the shop until the test ends, with one tracer per service, and if
// withHostile is set, spans with hostile labels from another tracer.
func load(t *testing.T, socket string, withHostile bool) {
	t.Helper()
	stop := make(chan struct{})
	var publishing sync.WaitGroup
	tracer := func(service, version string, routes []route) {
		c, err := client.Open(client.Config{
			Socket: socket, MaxAge: 20 * time.Millisecond,
			Name: "spanstatsd-go", Origin: client.Origin{
				Service: service, Env: "prod", Version: version, Lang: "go", Host: "shop-7c9f",
				TracerVersion: "2.4.0",
				ContainerID:   "4f1d2c3b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f00f",
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		publishing.Go(func() {
			defer c.Close(t.Context())
			publish(c, service, routes, stop)
		})
	}
	for service, routes := range shop {
		tracer(service, "1.8.2", routes)
	}
	if withHostile {
		var routes []route
		for _, text := range hostile {
			routes = append(routes, route{text, text, "server", 60, 3, 9 * time.Millisecond})
		}
		tracer(hostile[0], hostile[1], routes)
	}
	t.Cleanup(func() {
		close(stop)
		publishing.Wait()
	})
}

func publish(c *client.Client, service string, routes []route, stop chan struct{}) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		var batch []client.Snapshot
		for _, r := range routes {
			for range 1 + rand.IntN(r.share) {
				took := r.typical/2 + time.Duration(rand.ExpFloat64()*float64(r.typical/2))
				batch = append(batch, client.Snapshot{
					Key: client.Key{
						Service: service, Operation: r.operation, Resource: r.resource,
						Kind: r.kind, HTTPEndpoint: r.resource,
					},
					Duration: took, End: time.Now(), Error: r.failsOne > 0 && rand.IntN(r.failsOne) == 0,
					TopLevel: r.kind == "server",
				})
			}
		}
		c.Publish(batch)
	}
}
