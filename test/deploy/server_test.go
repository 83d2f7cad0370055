//go:build prometheus

package deploy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// server is a real Prometheus server.
type server struct {
	t    *testing.T
	base string
}

// startPrometheus starts a server that scrapes a daemon, with the rules of the deployment and those in sloRules.
func startPrometheus(t *testing.T, dir, target, sloRules string) *server {
	t.Helper()
	rules, err := filepath.Abs(filepath.Dir(daemonRules.rules))
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\n"+
		"rule_files: [%q, %q, %q]\nscrape_configs:\n"+
		"  - {job_name: spanstatsd, static_configs: [{targets: [%q]}]}\n"+
		"  - {job_name: requests, metrics_path: /metrics/spans, static_configs: [{targets: [%[4]q]}]}\n",
		rules+"/alerts.yaml", rules+"/requests.yaml", sloRules, target)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return runPrometheus(t, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"))
}

func runPrometheus(t *testing.T, args ...string) *server {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("no prometheus on this machine; on Debian: apt-get install --no-install-recommends " +
			"prometheus")
	}
	address := freeAddress(t)
	start(t, program, append(args, "--web.listen-address="+address, "--log.level=error")...)
	return &server{t, "http://" + address}
}

// result is the API's response to a query.
type result struct {
	Status, Error string
	Data          struct {
		Result []struct{ Value [2]any }
	}
}

// get sends an API request. An error means that the server is not listening yet.
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

// await repeats a query until the result is not empty.
func (s *server) await(promql string) {
	s.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		r, err := s.query(promql)
		if err == nil && len(r.Data.Result) > 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the server returned no result for %s; last response %+v, %v", promql, r, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// ask returns the single number in the result of a query.
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

// answers runs each query of a dashboard. Queries for values above 0 only, and those about a memory
// limit, may have an empty result.
func (s *server) runQueries(file *dashboardFile) {
	s.t.Helper()
	all := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$job", ".*", "$instance", ".*",
		"$kind", ".*", "$service", ".*", "$route", ".*", "$slo", ".*")
	for _, p := range file.read(s.t).Panels {
		for _, target := range p.Targets {
			r, err := s.query(all.Replace(target.Expr))
			if err != nil || r.Status != "success" {
				s.t.Errorf("%s: %v, %s", p.Title, err, r.Error)
			} else if !strings.Contains(target.Expr, "> 0") && len(r.Data.Result) == 0 {
				s.t.Errorf("%s: no result for %s", p.Title, target.Expr)
			}
		}
	}
}

// rulesAreWell checks that the server evaluates each rule of the files without an error.
func (s *server) rulesAreWell(files ...ruleFile) {
	s.t.Helper()
	var response struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := s.get("rules", nil, &response); err != nil {
		s.t.Fatal(err)
	}
	evaluated := 0
	for _, group := range response.Data.Groups {
		for _, rule := range group.Rules {
			evaluated++
			if rule.Health != "ok" {
				s.t.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
	want := 0
	for _, file := range files {
		want += len(file.read(s.t))
	}
	if evaluated != want {
		s.t.Errorf("the server has %d of %d rules", evaluated, want)
	}
}
