//go:build languages

package java

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var installed = os.Getenv("JAVA_DIR") // by install.sh

// javas returns the machine's default java and the newer ones, by version.
func javas(t *testing.T) map[string]string {
	t.Helper()
	own, err := exec.LookPath("java")
	if err != nil {
		t.Fatal(err)
	}
	if own, err = filepath.EvalSymlinks(own); err != nil {
		t.Fatal(err)
	}
	others, err := filepath.Glob("/usr/lib/jvm/*/bin/java")
	if err != nil {
		t.Fatal(err)
	}
	all, least := map[string]string{}, ""
	for _, java := range append([]string{own}, others...) {
		release, err := os.ReadFile(filepath.Join(filepath.Dir(java), "..", "release"))
		if err != nil {
			continue
		}
		_, version, _ := strings.Cut(string(release), `JAVA_VERSION="`)
		version, _, _ = strings.Cut(version, ".")
		if version, _, _ = strings.Cut(version, `"`); all[version] == "" &&
			(least == "" || len(version) >= len(least) && version > least) {
			all[version] = java
		}
		if java == own {
			least = version
		}
	}
	return all
}

// eachJava runs a test with each of them.
func eachJava(t *testing.T, test func(t *testing.T, java string)) {
	t.Helper()
	for version, java := range javas(t) {
		t.Run("java "+version, func(t *testing.T) { test(t, java) })
	}
}

// extension is the only file that the Java agent is given.
const extension = "spanstatsd.jar"

// extensions returns the agent setting that loads the extension and, optionally, the oracle.
func extensions(alsoOracle bool) string {
	jars := filepath.Join(installed, "clients", extension)
	if alsoOracle {
		jars += "," + filepath.Join(installed, "oracle", "oracle.jar")
	}
	return "-Dotel.javaagent.extensions=" + jars
}

// shop is a running application.
type shop struct {
	url    string
	end    func(t *testing.T) (output string)
	output string // available once it has ended
}

// startShop starts the application with the Java agent, with additional Java settings and environment
// variables.
func startShop(t *testing.T, java string, behind *receiver, settings []string, env ...string) *shop {
	t.Helper()
	arguments := slices.Concat([]string{
		"-Xmx64m", "-XX:+UseG1GC",
		"-javaagent:" + filepath.Join(installed, "oracle/lib/opentelemetry-javaagent.jar"),
	},
		settings, []string{
			"-cp", filepath.Join(installed, "shop/classes") + ":" + filepath.Join(installed, "shop/lib/*"),
			"shop.Shop",
			"--server.port=0", "--server.address=127.0.0.1", "--server.shutdown=graceful",
		})
	command := exec.CommandContext(t.Context(), java, arguments...)
	command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "OTEL_SERVICE_NAME=shop",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test,service.version=1.2",
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=" + fmt.Sprint(share),
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + behind.url, "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none",
	}, env...)
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
	s := &shop{}
	var before string
	s.url, before = listening(t, said)
	output := make(chan string, 1)
	go func() {
		rest, _ := io.ReadAll(said)
		output <- before + string(rest)
	}()
	s.end = func(t *testing.T) string {
		stdin.Close()
		err := <-ended
		s.output = <-output
		if err != nil {
			t.Errorf("the application ended with %v: %s", err, s.output)
		}
		return s.output
	}
	return s
}

// listening reads an application's output until the application prints its URL.
func listening(t *testing.T, said *bufio.Reader) (url, before string) {
	t.Helper()
	var lines strings.Builder
	for {
		line, err := said.ReadString('\n')
		if port, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on "); ok {
			return "http://127.0.0.1:" + port, lines.String()
		}
		lines.WriteString(line)
		if err != nil {
			t.Fatalf("the application ended: %s", lines.String())
		}
	}
}

// get requests a path.
func (s *shop) get(t *testing.T, path string) (status int) {
	t.Helper()
	resp, err := http.Get(s.url + path)
	if err != nil {
		t.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

// statuses are the HTTP statuses of orders, by the number modulo 5.
var statuses = [5]int{200, 200, 201, 404, 500}

// order sends the given number of orders, a few concurrently, and returns the duration of each.
func (s *shop) order(t *testing.T, orders int) (took []time.Duration) {
	t.Helper()
	const users = 4
	var sending sync.WaitGroup
	took = make([]time.Duration, orders)
	for user := range users {
		sending.Go(func() {
			for i := user; i < orders; i += users {
				began := time.Now()
				if got := s.get(t, fmt.Sprint("/orders/", i)); got != statuses[i%len(statuses)] {
					t.Errorf("order %d: %d", i, got)
				}
				took[i] = time.Since(began)
			}
		})
	}
	sending.Wait()
	return took
}
