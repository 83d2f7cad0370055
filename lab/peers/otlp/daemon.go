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

// process is what requests are sent to: a daemon, or a relay.
type process struct {
	cmd     *exec.Cmd
	address string       // that takes requests
	http    string       // of a daemon, that tells how it is
	end     func() error // in order
}

// startDaemon starts the program before a receiver.
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
		_ = json.Unmarshal(lines.Bytes(), &line) // of another line nothing is wanted
		switch {
		case line.Msg == "taking OTLP":
			p.address = line.Addr
		case line.HTTP != "":
			p.http = "http://" + line.HTTP
		}
	}
	if p.http == "" || p.address == "" {
		return nil, errors.Join(errors.New("start daemon: it says nowhere that it listens"), p.end())
	}
	go func() {
		for lines.Scan() { // or it would wait for its log's reader
			if line := lines.Text(); !strings.Contains(line, `"level":"INFO"`) {
				fmt.Fprintln(os.Stderr, "daemon:", line)
			}
		}
	}()
	return p, nil
}

// figures are what a daemon says of itself.
type figures struct {
	mallocs float64 // that Go's runtime has made
	spans   uint64  // received
	dropped uint64
}

func (p *process) figures() (f figures, err error) {
	if p.http == "" { // a relay does not tell
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
		number, _ := strconv.ParseFloat(value, 64) // of a comment 0
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
