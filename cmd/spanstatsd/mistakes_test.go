package main

import (
	"bytes"
	"strings"
	"testing"
)

// refusal returns the error that a command line writes to stderr. The process must exit with the
// code for usage errors.
func refusal(t *testing.T, args []string, environment ...string) string {
	t.Helper()
	cmd := program(t, args...)
	cmd.Env = append(cmd.Env, environment...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	_ = cmd.Run() // the exit code is checked below
	if code := cmd.ProcessState.ExitCode(); code != exitUsage {
		t.Errorf("%v %v: exit code %d: %s", environment, args, code, stderr.String())
	}
	return stderr.String()
}

// TestConfigCheck_EachErrorOnce: each invalid value, or invalid combination of values, is
// one line, and no error causes another.
func TestConfigCheck_EachErrorOnce(t *testing.T) {
	output := refusal(t,
		[]string{
			"config", "--check", "--flush-interval=1h",
			"--max-aggregates=0", "--label-bytes=1KiB", "--max-origins=0",
			"--cardinality-limit=resource=0,shape=4",
			"--max-key-bytes=4KiB", "--max-key-bytes-total=2KiB", "--max-connections=0", "--sketch-bytes=1",
			"--retry-bytes=100KiB",
			"--retry-age=-1s", "--agent-url=http://agent:99999",
			"--http-addr=:99999", "--apm-socket=/s", "--apm-addr=9999", "--apm-max-body=1",
			"--apm-max-connections=0",
			"--apm-buffer=2m", "--debug-dir=/no/such/directory", "--web-config-file=/no/such/file",
			"--shutdown-grace=0s",
		},
		"SPANSTATSD_SOCKET=/s",
	)
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for _, want := range []string{
		"check flush-interval: 1h",
		"check max-aggregates: 0", "check label-bytes: 1KiB", "check max-origins: 0",
		"check cardinality-limit of resource: 0", `"shape=4"`,
		"check max-key-bytes: 4KiB", "check max-key-bytes-total: 2KiB", "check max-connections: 0",
		"check sketch-bytes: 1 ",
		"check retry-bytes: 100KiB", "check retry-age and", "port 99999 is not between",
		"check http-addr: address 99999: invalid port", "check apm-socket: /s is also the address of --socket",
		"check apm-addr: address 9999: missing port",
		"check apm-max-body: 1 ", "check apm-max-connections: 0", "check apm-buffer: 2m0s", "check debug-dir",
		"check web-config-file",
		"check shutdown-grace",
	} {
		found := 0
		for _, line := range lines {
			if strings.Contains(line, want) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d lines contain %q", found, want)
		}
	}
	if len(lines) != 22 || t.Failed() {
		t.Errorf("want 22 lines of errors, got %d:\n%s", len(lines), output)
	}
}

// TestValues_InvalidAreRejected checks that run, before it starts anything, and config --check reject them.
func TestValues_InvalidAreRejected(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--apm-addr 9999", "apm-addr"},
		{"--socket=", "set --socket"},
		{"--socket=/run/a --apm-socket=/run/../run/a", "the address of --socket"},
		{"--http-addr=:99999", "http-addr"},
		{"--http-addr=", "http-addr"},
		{"--apm-addr=127.0.0.1:99999", "apm-addr"},
		{"--agent-url=http://agent:99999", "99999"},
		{"--debug-dir=/no/such/directory", "debug-dir"},
		{"--debug-dir=/etc/passwd", "not a directory"},
		{"--sketch-bytes=16MB", "as 64MiB"},
	} {
		for _, command := range []string{"config --check ", "run "} {
			if output := refusal(t, strings.Fields(command+c.args)); !strings.Contains(output, c.want) ||
				strings.Count(output, "\n") != 1 {
				t.Errorf("%s%s: %q, want one line with %q", command, c.args, output, c.want)
			}
		}
	}
}

// TestLimits_SumDoesNotOverflow: each limit has a maximum, so that the sum of all does not
// overflow when it is compared with the available memory and file descriptors.
func TestLimits_SumDoesNotOverflow(t *testing.T) {
	args := []string{"config", "--check", "--apm-addr=127.0.0.1:0"}
	limits := []string{
		"max-key-bytes", "max-key-bytes-total", "max-byte-rate", "retry-bytes", "sketch-bytes",
		"label-bytes",
		"apm-max-body", "apm-max-body-bytes", "apm-max-connections", "max-connections",
		"max-aggregates", "max-origins", "ring-slots",
	}
	for _, limit := range limits {
		args = append(args, "--"+limit+"=9223372036854775807")
	}
	output := refusal(t, args, "GOMEMLIMIT=400MiB")
	for _, limit := range limits {
		if !strings.Contains(output, "check "+limit+": ") && limit != "ring-slots" {
			t.Errorf("no error about %s", limit)
		}
	}
	if !strings.Contains(output, "size ring: ") || strings.Contains(output, "need -") ||
		strings.Contains(output, " -9223") {
		t.Error(output)
	}
	if output := refusal(t, []string{"config", "--check", "--retry-bytes=2GiB"},
		"GOMEMLIMIT=400MiB"); !strings.Contains(output, "lower --retry-bytes") {
		t.Errorf("more than the available memory: %s", output)
	}
}

// TestVariables_UnknownIsAnError: this excludes variables of other commands and those that Kubernetes
// sets for a Service.
func TestVariables_UnknownIsAnError(t *testing.T) {
	for _, command := range []string{"run", "config", "config --check", "status", "wait ready"} {
		if output := refusal(t, strings.Fields(command), "SPANSTATSD_RING_SLOT=1024"); !strings.Contains(output,
			"SPANSTATSD_RING_SLOT: ") {
			t.Errorf("%s: %s", command, output)
		}
	}
	cmd := program(t, "config", "--check")
	cmd.Env = append(cmd.Env, "SPANSTATSD_URL=http://x:1", "SPANSTATSD_AT_MOST=3s",
		"SPANSTATSD_SERVICE_HOST=10.0.0.1",
		"SPANSTATSD_SERVICE_PORT=9126", "SPANSTATSD_SERVICE_PORT_HTTP_METRICS=9126",
		"SPANSTATSD_PORT=tcp://10.0.0.1:9126",
		"SPANSTATSD_PORT_9126_TCP=tcp://10.0.0.1:9126", "SPANSTATSD_PORT_9126_TCP_ADDR=10.0.0.1",
		"SPANSTATSD_NODE_PORT_9126_TCP_PORT=9126")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	cmd = program(t, "version")
	cmd.Env = append(cmd.Env, "SPANSTATSD_RING_SLOT=1024")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("version has no flag to miss: %v: %s", err, out)
	}
}

// TestSizes_Units: sizes have units on the command line, in variables, and in the output.
func TestSizes_Units(t *testing.T) {
	for _, size := range []string{"3MiB", "3145728", "3072KiB"} {
		cmd := program(t, "config", "--sketch-bytes="+size)
		cmd.Env = append(cmd.Env, "SPANSTATSD_LABEL_BYTES="+size)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.Join(strings.Fields(string(out)), " ")
		for _, want := range []string{
			"--sketch-bytes 3MiB flag", "--label-bytes 3MiB environment",
			"--retry-bytes 16MiB default",
		} {
			if !strings.Contains(shown, want) {
				t.Errorf("with %s, config does not show %s: %s", size, want, out)
			}
		}
	}
}

// TestUsageErrors_ExitCodeTwo: the code is 2 for every command.
func TestUsageErrors_ExitCodeTwo(t *testing.T) {
	for _, line := range []string{
		"--no", "nothing", "completion bash no", "version no",
		"version --no", "man", "man --no x", "man a b",
		"run no", "run --no", "config no", "config --no",
		"status no", "status --url=ftp://x", "status --timeout=0s", "status --timeout=-1s",
		"status --ca-file=/no/such/file", "status --watch --interval=1ms",
		"dump", "dump --no x", "prepare no", "prepare --socket=", "prepare --directory-mode=x",
		"prepare --directory-owner=x",
		"wait", "wait no", "wait ready idle", "wait ready --at-most=-1s", "wait idle --at-most=0s",
		"wait ready --url=:::", "slo no", "slo rules", "slo rules no", "slo rules --slo x",
	} {
		if output := refusal(t, strings.Fields(line)); !strings.HasPrefix(output, "spanstatsd: ") ||
			strings.Count(output, "\n") != 1 {
			t.Errorf("%s: %q", line, output)
		}
	}
}
