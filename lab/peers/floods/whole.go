package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/peers/agent"
	"github.com/spanstatsd/spanstatsd/lab/workload"
	"golang.org/x/sys/unix"
)

// measureWhole returns the cost per span of a process with the agent's code, from the bytes in
// its socket to the payload, like the daemon's figure. All bodies are encoded in advance, so
// that the sender uses no CPU time during the measurement.
func measureWhole(shape string, spans []workload.Snapshot) (float64, error) {
	var bodies []byte
	for left := spans; len(left) > 0; left = left[min(agent.TraceSpans, len(left)):] {
		var err error
		if bodies, err = agent.AppendBody(bodies, left[:min(agent.TraceSpans, len(left))]); err != nil {
			return 0, err
		}
	}
	out, err := feed(exec.Command("/proc/self/exe", "-whole"), bodies)
	if err != nil {
		return 0, fmt.Errorf("run the agent on %s: %w", shape, err)
	}
	var whole agent.Whole
	if err := json.Unmarshal(out, &whole); err != nil {
		return 0, fmt.Errorf("read what the agent counted of %s: %w", shape, err)
	}
	if whole.Spans != uint64(len(spans)) || whole.Groups == 0 {
		return 0, fmt.Errorf("read what the agent counted of %s: %d of %d spans, in %d groups", shape,
			whole.Spans, len(spans), whole.Groups)
	}
	return whole.CPU, nil
}

// feed runs a command with a socket as its standard input, and returns its output.
func feed(command *exec.Cmd, input []byte) ([]byte, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer theirs.Close()
	command.Stdin, command.Stderr = theirs, os.Stderr
	written := make(chan error, 1)
	go func() {
		_, err := ours.Write(input)
		written <- errors.Join(err, ours.Close())
	}()
	out, err := command.Output()
	theirs.Close() // the write fails if the command ended early
	return out, errors.Join(err, <-written)
}

// beAgent turns this process into one that counts the spans from its standard input.
func beAgent() error {
	whole, err := agent.CountWhole(os.Stdin)
	if err != nil {
		return fmt.Errorf("count spans: %w", err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(whole); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}

// draw returns the spans that the agent's code counts in a round.
func draw(shape string, seed uint64) ([]workload.Snapshot, error) {
	generator, err := workload.New(workload.Flood(shape, whole), seed)
	if err != nil {
		return nil, fmt.Errorf("draw spans: %w", err)
	}
	spans := make([]workload.Snapshot, drawn)
	if workload.IsHostile(shape) {
		spans = spans[:drawnLarge]
	}
	generator.Fill(spans, time.Now().UnixNano())
	return spans, nil
}

// drawn is the number of spans that the agent's code counts in a round. It counts each span
// once, because afterwards it would know the key. For spans with many labels the number is
// lower, so that they fit into memory.
const (
	drawn      = 1 << 15
	drawnLarge = 1 << 11
)
