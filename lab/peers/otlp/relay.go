package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spanstatsd/spanstatsd/lab/bench/relay"
)

// startRelay starts this program as a bare relay to a receiver. For gRPC the relay copies bytes
// without parsing.
func startRelay(target string, isGRPC bool) (*process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &process{cmd: exec.Command(path, "-relay")}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start relay: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start relay: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start relay: %w", err)
	}
	p.end = func() error {
		in.Close()
		return p.cmd.Wait()
	}
	var ready relay.Ready
	err = json.NewEncoder(in).Encode(relay.Job{Network: "tcp", Listen: "127.0.0.1:0", To: target, Pump: isGRPC})
	if err = errors.Join(err, json.NewDecoder(out).Decode(&ready)); err != nil {
		return nil, errors.Join(fmt.Errorf("start relay: %w", err), p.end())
	}
	p.address = ready.Address
	return p, nil
}
