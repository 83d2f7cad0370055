package program

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// limited returns a command of the daemon with a limit on open files.
func limited(t *testing.T, files int, args ...string) *exec.Cmd {
	t.Helper()
	cmd := program(t, args...)
	cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), cmd.Path},
		args...)
	cmd.Path = "/bin/sh"
	return cmd
}

// TestDescriptors_LimitConnections checks that default limits are reduced to the available file
// descriptors, and that explicit limits above them are rejected.
func TestDescriptors_LimitConnections(t *testing.T) {
	for _, c := range []struct {
		files   int
		args    []string
		want    string // in the list of settings
		problem string // error of --check
	}{
		{4096, nil, "--max-connections 1024 default", ""},
		{1024, nil, "--max-connections 512 descriptors, instead of 1024", ""},
		{
			1024,
			[]string{"--apm-addr=127.0.0.1:0"},
			"--apm-max-connections 128 descriptors, instead of 512",
			"",
		},
		{1024, []string{"--max-connections=1000"}, "--max-connections 1000 flag", "lower --max-connections"},
		{200, nil, "--max-connections 16 descriptors, instead of 1024", "raise the limit"},
	} {
		name := strings.Join(append([]string{fmt.Sprint(c.files)}, c.args...), " ")
		out, err := limited(t, c.files, append([]string{"config"}, c.args...)...).CombinedOutput()
		if err != nil || !strings.Contains(strings.Join(strings.Fields(string(out)), " "), c.want) {
			t.Errorf("%s: %v, want %q in\n%s", name, err, c.want, out)
		}
		out, err = limited(t, c.files, append([]string{"config", "--check"}, c.args...)...).CombinedOutput()
		if (err != nil) != (c.problem != "") || !strings.Contains(string(out), c.problem) {
			t.Errorf("%s: %v: %s, want %q", name, err, out, c.problem)
		}
	}
}

// TestDescriptors_ProbesAndDeliveriesAtLimit opens as many connections as possible to every
// address. Probes and deliveries to the agent must still work.
func TestDescriptors_ProbesAndDeliveriesAtLimit(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	daemon, startLine := listening(t, limited(t, 400, "run", "--socket", socket, "--agent-url", agent.URL(),
		"--http-addr", "127.0.0.1:0", "--log-format", "json", "--flush-interval", "1s", "--shutdown-grace",
		"1s"))
	publishOne(t, socket)
	for range 500 {
		for network, address := range map[string]string{"unix": socket, "tcp": fmt.Sprint(startLine["http"])} {
			if conn, err := net.Dial(network, address); err == nil {
				defer conn.Close()
			}
		}
	}
	for _, path := range []string{"/livez", "/readyz"} {
		response, err := http.Get("http://" + daemon.http + path)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("%s: %v %v", path, response, err)
		}
	}
	eventually.True(t, "the agent has the span", func() bool { return agent.Totals().Hits == 1 })
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, log := daemon.exit(); code != 0 {
		t.Errorf("exit code %d, log %v", code, log)
	}
}
