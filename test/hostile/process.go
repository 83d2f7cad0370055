package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// hostileProcess runs one group of shapes against one daemon. It is a separate process because
// daemons limit each process to a share of their capacity.
type hostileProcess struct {
	process *exec.Cmd
	stdin   io.Closer
	reports chan report // receives the final report
}

// report is the final report of a hostile process, written to its standard output.
type report struct {
	Attempts         map[string]uint64
	InvalidResponses []string // invalid responses of a daemon
}

// task is the input of a hostile process.
type task struct {
	Target target
	Names  []string // names of shapes
}

// taskVariable is the environment variable with the task of a hostile process.
const taskVariable = "HOSTILE_TASK"

// startHostile starts the hostile processes of each daemon.
func (s *soak) startHostile() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, d := range s.daemons {
		for _, shapes := range shapeGroups {
			var names []string
			for _, shape := range shapes {
				if s.isSelected(shape.name) {
					names = append(names, shape.name)
				}
			}
			p, err := s.startProcess(self, task{Target: d.target, Names: names})
			if err != nil {
				return fmt.Errorf("start hostile process: %w", err)
			}
			s.hostile = append(s.hostile, p)
		}
	}
	return nil
}

// startProcess starts this program as a hostile process.
func (s *soak) startProcess(self string, t task) (*hostileProcess, error) {
	encoded, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	p := &hostileProcess{process: exec.Command(self), reports: make(chan report, 1)}
	p.process.Env = append(os.Environ(), taskVariable+"="+string(encoded), "GORACE=atexit_sleep_ms=0")
	p.process.Stderr = s.messages
	if p.stdin, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		var r report
		_ = json.NewDecoder(stdout).Decode(&r) // an empty output is an empty report
		p.reports <- r
	}()
	return p, nil
}

// finish ends the process and returns its report.
func (p *hostileProcess) finish() (report, error) {
	p.stdin.Close()
	select {
	case r := <-p.reports:
		if err := p.process.Wait(); err != nil || r.Attempts == nil {
			return r, fmt.Errorf("a hostile process ended with %w", err)
		}
		return r, nil
	case <-time.After(time.Minute):
		_ = p.process.Process.Signal(syscall.SIGQUIT) // makes it print its goroutines
		return report{}, errors.New("a hostile process does not end within a minute")
	}
}

func (p *hostileProcess) kill() { _ = p.process.Process.Kill() }

// runHostile is the main function of a hostile process. It returns when standard input ends.
func runHostile() error {
	var t task
	if err := json.Unmarshal([]byte(os.Getenv(taskVariable)), &t); err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var running sync.WaitGroup
	var mu sync.Mutex
	r := report{Attempts: map[string]uint64{}}
	record := func(name string, err error) {
		mu.Lock()
		defer mu.Unlock()
		r.Attempts[name]++
		if errors.Is(err, errInvalidResponse) && len(r.InvalidResponses) < 10 {
			r.InvalidResponses = append(r.InvalidResponses, fmt.Sprintf("%s: %v", name, err))
		}
	}
	for _, shape := range slices.Concat(shapeGroups...) {
		if !slices.Contains(t.Names, shape.name) {
			continue
		}
		for range shape.concurrency {
			running.Go(func() {
				for ctx.Err() == nil {
					err := shape.attempt(ctx, &t.Target)
					record(shape.name, err)
					if pause(ctx, shape.interval); err != nil {
						pause(ctx, 50*time.Millisecond) // the daemon is stopped or refuses connections
					}
				}
			})
		}
	}
	running.Wait()
	return json.NewEncoder(os.Stdout).Encode(r)
}
