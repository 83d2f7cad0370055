//go:build languages

package java

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExtension_CountsEverySpan checks that, at a sampling rate of one percent, the spans published by the
// extension are counted like the spans exported by the SDK itself, for each bin, and that the number of
// exported traces matches the sampling rate.
func TestExtension_CountsEverySpan(t *testing.T) {
	eachJava(t, func(t *testing.T, java string) {
		behind, ours, oracle := newReceiver(t), newLedger(t), newLedger(t)
		socket := filepath.Join(t.TempDir(), "s")
		d, o := start(t, ours, socket), start(t, oracle, filepath.Join(t.TempDir(), "o"))
		s := startShop(t, java, behind, []string{extensions(true)}, "SPANSTATSD_SOCKET="+socket,
			"ORACLE_ENDPOINT=http://"+o.otlp+"/v1/traces")
		const orders, spun = 8000, 1000
		s.order(t, orders)
		s.get(t, "/spin/1000")
		s.end(t)
		status := d.status(t)
		d.stop(t)
		o.stop(t)
		ours.equals(t, oracle)
		if got := ours.hits(isRequest); got != orders+1 {
			t.Errorf("%d requests are counted, %d were answered", got, orders+1)
		}
		if got := ours.hits(func(k key) bool { return strings.HasPrefix(k.resource, "spin ") }); got != spun {
			t.Errorf("%d spans are counted that the application made itself, want %d", got, spun)
		}
		if b := status.Accounting; b.DroppedTotal() != 0 || sum(status.ClientLost) != 0 {
			t.Errorf("accounting %+v, lost %v", b, status.ClientLost)
		}
		behind.holdsTheShare(t, ours.hits(isRequest))
		if behind.unmarked != 0 {
			t.Errorf("%d requests or resources of the exporter have no mark", behind.unmarked)
		}
		t.Logf("%d spans of %d rows are counted, as by the oracle", ours.hits(anyKey), len(ours.rows))
	})
}

// TestExtension_CountsOnceWithExport has the application also export every span to the daemon. The counted marker
// must ensure that each is counted once.
func TestExtension_CountsOnceWithExport(t *testing.T) {
	ours, socket := newLedger(t), filepath.Join(t.TempDir(), "s")
	d := start(t, ours, socket)
	s := startShop(t, "java", &receiver{url: "http://" + d.otlp}, []string{extensions(false)},
		"SPANSTATSD_SOCKET="+socket, "OTEL_TRACES_SAMPLER=always_on")
	const orders = 500
	s.order(t, orders)
	s.end(t)
	status := d.status(t)
	d.stop(t)
	if got := ours.hits(isRequest); got != orders {
		t.Errorf("%d requests are counted, %d were answered", got, orders)
	}
	if r := status.Receivers["otlp"].Requests; r["computed_by_client"] == 0 || r["counted"] != 0 {
		t.Errorf("what became of the exporter's requests: %v", r)
	}
}

// documentedConfiguration returns the file of OpenTelemetry's declarative configuration in docs/java-agent.md.
func documentedConfiguration(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/java-agent.md")
	if err != nil {
		t.Fatal(err)
	}
	_, configuration, _ := strings.Cut(string(page), "```yaml\n")
	configuration, _, isComplete := strings.Cut(configuration, "```")
	if !isComplete {
		t.Fatal("docs/java-agent.md has no configuration")
	}
	return configuration
}

// TestDeclarativeConfiguration_CountsEverySpan configures the agent by a file. The application exports every second
// trace to the daemon, which must count each span once.
func TestDeclarativeConfiguration_CountsEverySpan(t *testing.T) {
	directory := t.TempDir()
	ours, socket, file := newLedger(t), filepath.Join(directory, "s"), filepath.Join(directory, "otel.yaml")
	configuration := strings.Replace(documentedConfiguration(t), "ratio: 0.01", "ratio: 0.5", 1)
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, ours, socket)
	s := startShop(t, "java", &receiver{url: "http://" + d.otlp}, []string{extensions(false)},
		"SPANSTATSD_SOCKET="+socket, "OTEL_CONFIG_FILE="+file)
	const orders = 500
	s.order(t, orders)
	output := s.end(t)
	status := d.status(t)
	d.stop(t)
	if got := ours.hits(isRequest); got != orders {
		t.Errorf("%d requests are counted, %d were answered: %s", got, orders, output)
	}
	if r := status.Receivers["otlp"].Requests; r["computed_by_client"] == 0 || r["counted"] != 0 {
		t.Errorf("what became of the exporter's requests: %v", r)
	}
	for k := range ours.rows {
		if k.service != "shop" {
			t.Errorf("the service is %q", k.service)
		}
	}
}

// TestLibrary_CountsEverySpan checks the same for a library instead of an extension.
func TestLibrary_CountsEverySpan(t *testing.T) {
	eachJava(t, func(t *testing.T, java string) {
		behind, ours := newReceiver(t), newLedger(t)
		socket := filepath.Join(t.TempDir(), "s")
		d := start(t, ours, socket)
		const spans = 40000
		jars := []string{installed + "/library", installed + "/clients/*", installed + "/oracle/lib/*"}
		program := exec.Command(java, "-Xmx64m", "-cp", strings.Join(jars, ":"), "Library", fmt.Sprint(spans),
			behind.url+"/v1/traces")
		program.Env = append(program.Environ(), "SPANSTATSD_SOCKET="+socket)
		var output bytes.Buffer
		program.Stdout, program.Stderr = &output, &output
		if err := program.Run(); err != nil {
			t.Fatalf("%v: %s", err, output.String())
		}
		lost := d.status(t).ClientLost
		d.stop(t)
		counted := map[string]uint64{}
		for at, r := range ours.rows {
			counted[at.operation+" "+at.resource] += r.hits
		}
		if len(ours.rows) != 2 || counted["http.server.request GET /carts/{id}"] != spans/2 ||
			counted["postgresql.query SELECT carts"] != spans/2 || sum(lost) != 0 {
			t.Errorf("%d spans were made, counted are %v, lost %v: %s", spans, counted, lost, output.String())
		}
		behind.holdsTheShare(t, spans/2)
	})
}
