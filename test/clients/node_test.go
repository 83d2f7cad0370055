//go:build languages

package clients

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

// These tests run the tarball of clients/node, as installed by node/install.sh (make test-node-client). NODE_DIR is the
// folder.

// TestNode_CheckClient checks with check-client that the client follows the protocol, also when the daemon dies.
func TestNode_CheckClient(t *testing.T) {
	lab, err := built.Plain(t.TempDir(), built.Lab)
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--connections", "1"}, {"--connections", "2", "--die"}} {
		dir, err := os.MkdirTemp("", "check")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		socket := filepath.Join(dir, "s")
		check := exec.Command(lab, append([]string{"check-client", "--socket", socket}, flags...)...)
		var report bytes.Buffer
		check.Stdout, check.Stderr = &report, &report
		if err := check.Start(); err != nil {
			t.Fatal(err)
		}
		out, clientErr := nodeCommand(t, "send.cjs", socket).CombinedOutput()
		if clientErr != nil {
			_ = check.Process.Kill()
		}
		if err := check.Wait(); err != nil || clientErr != nil {
			t.Errorf("%v: %v, %v\n%s\n%s", flags, err, clientErr, out, report.Bytes())
		}
	}
}

// TestNode_EqualsOTLP checks that a daemon which gets the spans of the shared vectors from the span processor exports the
// same series as one that gets them over OTLP.
func TestNode_EqualsOTLP(t *testing.T) {
	native, overOTLP := newPod(t), newPod(t)
	vectors, err := filepath.Abs("../../internal/rules/otel/testdata/labels.json")
	if err != nil {
		t.Fatal(err)
	}
	out, err := nodeCommand(t, "twice.cjs", native.socket, overOTLP.otlp, vectors).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	native.end(syscall.SIGTERM)
	overOTLP.end(syscall.SIGTERM)
	got, want := native.series(), overOTLP.series()
	if !maps.Equal(got, want) {
		t.Errorf("series of the span processor:\n%s\nof OTLP:\n%s", lines(got), lines(want))
	}
	if spans := strings.TrimSpace(string(out)); spans != strconv.FormatInt(sumOf(got), 10) {
		t.Errorf("%d of %s spans are counted", sumOf(got), spans)
	}
}

// TestNode_Servers checks that every request to a server with four workers is counted once although the SDK exports one
// trace in a hundred, to the same daemon, while that daemon is stopped and killed. The application has no code for it.
func TestNode_Servers(t *testing.T) {
	for name, program := range map[string]string{
		"Express": "shop_express.cjs", "Express_as_ES_module": "shop_express.mjs", "Fastify": "shop_fastify.cjs",
	} {
		t.Run(name, func(t *testing.T) {
			p, exports := newPod(t), newRelay(t)
			exports.set(p.otlp)
			address := freeAddress(t)
			process := nodeCommand(t, "--import=@spanstatsd/opentelemetry/register",
				"--import=@opentelemetry/auto-instrumentations-node/register", program)
			app := startApplication(t, p, exports, process, "ADDRESS="+address,
				"OTEL_NODE_ENABLED_INSTRUMENTATIONS=http,express", "OTEL_NODE_RESOURCE_DETECTORS=env,host,process")
			requests := &shopClient{t: t, url: "http://" + address, requests: map[string]int64{}}
			requests.requestDuringOutages(p, app)
			requests.check(p.series(), "/carts/:cart", app.unconfirmed())
			exports.check(t, requests.total())
		})
	}
}

// TestNode_DocumentedSetUp runs the set-up in docs/node-opentelemetry.md: each of its spans is counted.
func TestNode_DocumentedSetUp(t *testing.T) {
	page, err := os.ReadFile("../../docs/node-opentelemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```js\n")
	shown, _, _ := strings.Cut(after, "```")
	p := newPod(t)
	run := nodeCommand(t, "--input-type=module", "--eval",
		shown+"\nfor (let i = 0; i < 100; i++) trace.getTracer('shop').startSpan('job').end()\n")
	run.Env = append(os.Environ(), "SPANSTATSD_SOCKET="+p.socket, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+p.otlp,
		"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.1")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.end(syscall.SIGTERM)
	if counted := sumOf(p.series()); counted != 100 {
		t.Errorf("%d of 100 spans are counted", counted)
	}
}

// nodeCommand returns a command for Node.js in the folder of the applications.
func nodeCommand(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	dir := os.Getenv("NODE_DIR")
	if dir == "" {
		t.Fatal("NODE_DIR is not set; run make test-node-client")
	}
	command := exec.Command("node", arguments...)
	command.Dir = filepath.Join(dir, "applications")
	return command
}
