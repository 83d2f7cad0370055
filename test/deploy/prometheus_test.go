//go:build prometheus

package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// TestPrometheus has a real server scrape a daemon under load, and asks it over
// its API for the drop rate, for the books, whether the alert on drops fires,
// and every question of the dashboard.
//
// Beside two tracers there is a third that speaks another version, so that some spans are
// dropped whatever the machine's speed.
func TestPrometheus(t *testing.T) {
	dir, err := os.MkdirTemp("", "pr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	agent, err := standin.Start(standin.Config{Network: "unix", Address: filepath.Join(dir, "agent")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	target := freeAddress(t)
	start(t, binary, "run", "--socket", filepath.Join(dir, "s"), "--agent-url", agent.URL(), "--http-addr",
		target,
		"--flush-interval", "1s", "--log-level", "error")
	server := startPrometheus(t, dir, target)

	ctx, stop := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	clients := []*client.Client{openClient(t, dir, "one"), openClient(t, dir, "two")}
	for _, c := range clients {
		publishing.Go(func() { publish(ctx, c) })
	}
	refused := uint64(0)
	publishing.Go(func() { refused = speakAnotherVersion(ctx, filepath.Join(dir, "s")) })
	server.await(`sum(rate(spanstatsd_spans_dropped_total{reason="refused"}[30s])) > 0`)
	server.await(`sum(rate(spanstatsd_spans_received_total[30s])) >
		sum(rate(spanstatsd_spans_dropped_total[30s]))`)
	server.await(`ALERTS{alertname="SpanstatsdDropping", alertstate="firing", reason="refused"}`)
	stop()
	publishing.Wait()

	sent := refused
	for _, c := range clients {
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		sent += c.Stats().Sent
	}
	// Quiet: what was received is what the tracers know to have sent.
	server.await(fmt.Sprintf("spanstatsd_spans_received_total == %d and on (instance) "+
		"spanstatsd_spans_held == 0", sent))
	received := server.ask("spanstatsd_spans_received_total")
	aggregated := server.ask("sum(spanstatsd_spans_aggregated_total)")
	dropped := server.ask("sum(spanstatsd_spans_dropped_total)")
	flushed := server.ask("spanstatsd_spans_flushed_total")
	unsent := server.ask("sum(spanstatsd_spans_unsent_total)")
	if received != aggregated+dropped || aggregated != flushed+unsent || dropped == 0 ||
		flushed != float64(agent.Totals().Hits) {
		t.Errorf("received %v, aggregated %v, dropped %v, flushed %v, unsent %v; the agent counted %d",
			received, aggregated, dropped, flushed, unsent, agent.Totals().Hits)
	}
	t.Logf("books as Prometheus has them: received %.0f = aggregated %.0f + dropped %.0f; flushed %.0f, "+
		"unsent %.0f", received, aggregated, dropped, flushed, unsent)
	server.answersDashboard()
	server.rulesAreWell()
}

func openClient(t *testing.T, dir, service string) *client.Client {
	t.Helper()
	c, err := client.Open(client.Config{
		Socket: filepath.Join(dir, "s"),
		Origin: client.Origin{Service: service},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// publish sends some ten thousand spans a second.
func publish(ctx context.Context, c *client.Client) {
	batch := make([]client.Snapshot, 50)
	for i := range batch {
		batch[i].Key = client.Key{Service: "shop", Operation: "op", Resource: fmt.Sprint(i)}
		batch[i].Duration = time.Millisecond
	}
	for ctx.Err() == nil {
		for i := range batch {
			batch[i].End = time.Now()
		}
		c.Publish(batch)
		time.Sleep(5 * time.Millisecond)
	}
}

// speakAnotherVersion hands over ten spans ten times a second that the daemon refuses, and
// returns how many that were.
func speakAnotherVersion(ctx context.Context, socket string) (spans uint64) {
	key := wire.AppendKey(nil, &span.Key{Service: "shop", Operation: "op"})
	for ctx.Err() == nil {
		frames := wire.AppendHello(nil, &wire.Hello{Version: wire.Version + 1})
		start := len(frames)
		frames = wire.BeginSpans(frames)
		for range 10 {
			frames = wire.AppendWhole(frames, key, 1000, time.Now().UnixNano(), span.TopLevel, 1)
		}
		wire.EndSpans(frames, start, 10)
		if conn, err := net.Dial("unix", socket); err == nil {
			if _, err := conn.Write(frames); err == nil {
				spans += 10
			}
			conn.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return spans
}

// start runs a program until the end of the test.
func start(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// server is a real Prometheus.
type server struct {
	t    *testing.T
	base string
}

func startPrometheus(t *testing.T, dir, target string) *server {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("no prometheus on this machine; on Debian: apt-get install --no-install-recommends " +
			"prometheus")
	}
	alerts, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: spanstatsd, static_configs: [{targets: [%q]}]}]\n", alerts, target)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	start(t, program, "--config.file", file, "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", address, "--log.level", "error")
	return &server{t, "http://" + address}
}

// result is what the API answers to a query.
type result struct {
	Status, Error string
	Data          struct {
		Result []struct{ Value [2]any }
	}
}

// get asks the API; an error means that the server is not there yet.
func (s *server) get(path string, parameters url.Values, into any) error {
	response, err := http.Get(s.base + "/api/v1/" + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

func (s *server) query(promql string) (r result, err error) {
	err = s.get("query", url.Values{"query": {promql}}, &r)
	return r, err
}

// await asks until the answer is not empty.
func (s *server) await(promql string) {
	s.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		r, err := s.query(promql)
		if err == nil && len(r.Data.Result) > 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the server never had an answer to %s; the last was %+v, %v", promql, r, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// ask returns the one number that answers.
func (s *server) ask(promql string) float64 {
	s.t.Helper()
	r, err := s.query(promql)
	if err != nil || len(r.Data.Result) != 1 {
		s.t.Fatalf("%s: %+v, %v", promql, r, err)
	}
	number, err := strconv.ParseFloat(fmt.Sprint(r.Data.Result[0].Value[1]), 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return number
}

// answersDashboard asks each question of the dashboard. Those that show only
// what is above 0, or need a limit of memory, may have no answer.
func (s *server) answersDashboard() {
	s.t.Helper()
	var d dashboard
	if err := json.Unmarshal(readFile(s.t, dashboardFile), &d); err != nil {
		s.t.Fatal(err)
	}
	all := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$job", ".*", "$instance", ".*")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			r, err := s.query(all.Replace(target.Expr))
			if err != nil || r.Status != "success" {
				s.t.Errorf("%s: %v, %s", p.Title, err, r.Error)
			} else if !strings.Contains(target.Expr, "> 0") && len(r.Data.Result) == 0 {
				s.t.Errorf("%s: no answer to %s", p.Title, target.Expr)
			}
		}
	}
}

// rulesAreWell: the server evaluates each of our rules without an error.
func (s *server) rulesAreWell() {
	s.t.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := s.get("rules", nil, &answer); err != nil {
		s.t.Fatal(err)
	}
	evaluated := 0
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			evaluated++
			if rule.Health != "ok" {
				s.t.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
	if evaluated != len(rules(s.t)) {
		s.t.Errorf("the server has %d of %d rules", evaluated, len(rules(s.t)))
	}
}
