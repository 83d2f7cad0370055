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

// crowd is a process that sends the shapes of one crowd to one daemon. Crowds are separate processes,
// because daemons limit each process to a share of their capacity.
type crowd struct {
	process *exec.Cmd
	stdin   io.Closer
	said    chan report
}

// report is the final report of a crowd, written to its standard output.
type report struct {
	Tried map[string]uint64
	Wrong []string // invalid responses of a daemon
}

// task is the input of a crowd process.
type task struct {
	At    target
	Names []string // names of shapes
}

// crowdVariable is the environment variable with the task of a crowd process.
const crowdVariable = "HOSTILE_CROWD"

// invite starts the crowds of each daemon.
func (s *soak) invite() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, d := range s.daemons {
		for _, shapes := range crowds {
			var names []string
			for _, one := range shapes {
				if s.isTried(one.name) {
					names = append(names, one.name)
				}
			}
			c, err := s.startCrowd(self, task{At: d.at, Names: names})
			if err != nil {
				return fmt.Errorf("start hostile process: %w", err)
			}
			s.crowds = append(s.crowds, c)
		}
	}
	return nil
}

// startCrowd starts another process of this program.
func (s *soak) startCrowd(self string, t task) (*crowd, error) {
	told, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	c := &crowd{process: exec.Command(self), said: make(chan report, 1)}
	c.process.Env = append(os.Environ(), crowdVariable+"="+string(told), "GORACE=atexit_sleep_ms=0")
	c.process.Stderr = s.notes
	if c.stdin, err = c.process.StdinPipe(); err != nil {
		return nil, err
	}
	said, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		var r report
		_ = json.NewDecoder(said).Decode(&r) // an empty output is an empty report
		c.said <- r
	}()
	return c, nil
}

// leave makes a crowd end and returns its report.
func (c *crowd) leave() (report, error) {
	c.stdin.Close()
	select {
	case r := <-c.said:
		if err := c.process.Wait(); err != nil || r.Tried == nil {
			return r, fmt.Errorf("a hostile process ended with %w", err)
		}
		return r, nil
	case <-time.After(time.Minute):
		_ = c.process.Process.Signal(syscall.SIGQUIT) // makes it print its goroutines
		return report{}, errors.New("a hostile process does not end within a minute")
	}
}

func (c *crowd) kill() { _ = c.process.Process.Kill() }

// beCrowd is the main function of a crowd process. It returns when standard input ends.
func beCrowd() error {
	var t task
	if err := json.Unmarshal([]byte(os.Getenv(crowdVariable)), &t); err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var trying sync.WaitGroup
	var mu sync.Mutex
	r := report{Tried: map[string]uint64{}}
	note := func(name string, err error) {
		mu.Lock()
		defer mu.Unlock()
		r.Tried[name]++
		if errors.Is(err, errAnswered) && len(r.Wrong) < 10 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s: %v", name, err))
		}
	}
	for _, one := range slices.Concat(crowds...) {
		if !slices.Contains(t.Names, one.name) {
			continue
		}
		for range one.atOnce {
			trying.Go(func() {
				for ctx.Err() == nil {
					err := one.try(ctx, &t.At)
					note(one.name, err)
					if pause(ctx, one.every); err != nil {
						pause(ctx, 50*time.Millisecond) // the daemon is stopped or refuses connections
					}
				}
			})
		}
	}
	trying.Wait()
	return json.NewEncoder(os.Stdout).Encode(r)
}
