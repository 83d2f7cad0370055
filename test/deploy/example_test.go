//go:build prometheus

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestComposeExample_Runs runs the example's containers as plain processes: the same commands, variables
// and files, except for addresses and directories that only containers have. Prometheus must have a
// rate for each route of the shop and return data for every query of the dashboard.
func TestComposeExample_Runs(t *testing.T) {
	c := loadExample(t)
	dir, err := os.MkdirTemp("", "ex")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	shop := filepath.Join(dir, "shop")
	build := exec.Command("go", "build", "-o", shop, "./apps/goshop")
	build.Dir = "../otel"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the application: %v: %s", err, out)
	}
	here := c.here(t, dir)
	inside := func(words []string) (all []string) {
		for _, word := range words {
			all = append(all, here.Replace(word))
		}
		return all
	}
	start(t, binary, inside(c.Services["spanstatsd"].Command)...)
	var env []string
	for name, value := range c.Services["shop"].Environment {
		env = append(env, name+"="+here.Replace(*value))
	}
	startWith(t, env, shop)
	visitors := inside(c.Services["visitors"].Command)
	start(t, visitors[0], visitors[1:]...)
	server := runPrometheus(t, inside(c.Services["prometheus"].Command)...)

	for _, route := range []string{"GET /orders/{number}", "GET /stock/{number}"} {
		for _, status := range []string{"STATUS_CODE_UNSET", "STATUS_CODE_ERROR"} {
			server.await(`sum(rate(traces_span_metrics_calls_total{service_name="shop", span_kind="SPAN_KIND_SERVER", ` +
				`span_name="` + route + `", status_code="` + status + `"}[1m])) > 0`)
		}
	}
	server.await(`count(service:request_errors:ratio_rate5m{service_name="shop"} > 0.1)`)
	for _, file := range dashboards {
		if file.name == "requests.json" {
			server.runQueries(&file)
		}
	}
	server.rulesAreWell(daemonRules, requestRules)
}

// here replaces the addresses and directories of containers with those on this machine. Files mounted
// by Prometheus are copied to a directory with the same replacements.
func (c composed) here(t *testing.T, dir string) *strings.Replacer {
	t.Helper()
	const configs = "/etc/prometheus"
	page, otlp, shop := freeAddress(t), freeAddress(t), freeAddress(t)
	r := strings.NewReplacer(
		"spanstatsd:9126", page, "0.0.0.0:9126", page, "spanstatsd:4318", otlp, "0.0.0.0:4318", otlp,
		"shop:8080", shop, "0.0.0.0:8080", shop,
		"/tmp/spans.sock", filepath.Join(dir, "s"), configs, dir, "=/prometheus",
		"="+filepath.Join(dir, "data"),
	)
	for _, volume := range c.Services["prometheus"].Volumes {
		text := r.Replace(string(readFile(t, volume.Source)))
		name := filepath.Join(dir, strings.TrimPrefix(volume.Target, configs))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}
