package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// process is a daemon or a relay that receives requests.
type process struct {
	cmd     *exec.Cmd
	address string       // receives requests
	http    string       // HTTP address of a daemon's metrics
	end     func() error // shuts the process down
}

// startDaemon starts a daemon that forwards to a receiver.
func startDaemon(o options, socket, agent, forward string, flags ...string) (*process, error) {
	p := &process{cmd: exec.Command(o.program, append([]string{
		"run", "--socket", socket, "--agent-url", agent, "--http-addr", "127.0.0.1:0",
		"--otlp-addr", "127.0.0.1:0", "--otlp-forward", forward, "--log-format", "json",
	}, flags...)...)}
	log, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start daemon: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start daemon: %w; make build makes its program", err)
	}
	p.end = func() error {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		return p.cmd.Wait()
	}
	lines := bufio.NewScanner(log)
	for (p.http == "" || p.address == "") && lines.Scan() {
		var line struct{ Msg, Addr, HTTP string }
		_ = json.Unmarshal(lines.Bytes(), &line) // other lines are ignored
		switch {
		case line.Msg == "receiving OTLP":
			p.address = line.Addr
		case line.HTTP != "":
			p.http = "http://" + line.HTTP
		}
	}
	if p.http == "" || p.address == "" {
		return nil, errors.Join(errors.New("start daemon: it does not log its address"), p.end())
	}
	go func() {
		for lines.Scan() { // so that the daemon does not block on its log
			if line := lines.Text(); !strings.Contains(line, `"level":"INFO"`) {
				fmt.Fprintln(os.Stderr, "daemon:", line)
			}
		}
	}()
	return p, nil
}

// figures are read from a daemon's metrics.
type figures struct {
	mallocs float64 // allocations of the Go runtime
	spans   uint64  // received spans
	dropped uint64
}

func (p *process) figures() (f figures, err error) {
	if p.http == "" { // a relay has no metrics
		return f, nil
	}
	answer, err := http.Get(p.http + "/metrics")
	if err != nil {
		return f, fmt.Errorf("ask daemon: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return f, fmt.Errorf("ask daemon: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, _ := strconv.ParseFloat(value, 64) // 0 for comments
		switch {
		case name == "go_memstats_mallocs_total":
			f.mallocs = number
		case name == "spanstatsd_spans_received_total":
			f.spans = uint64(number)
		case strings.HasPrefix(name, "spanstatsd_spans_dropped_total"):
			f.dropped += uint64(number)
		}
	}
	return f, nil
}
