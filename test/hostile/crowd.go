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

// crowd is a process with the shapes of one crowd, before one daemon. They are processes of
// their own, because daemons hold each process to its share.
type crowd struct {
	process *exec.Cmd
	stdin   io.Closer
	said    chan report
}

// report is what a crowd says at its end, on its standard output.
type report struct {
	Tried map[string]uint64
	Wrong []string // answers that a daemon must not give
}

// task is what a crowd is told.
type task struct {
	At    target
	Names []string // of the shapes
}

// crowdVariable has the task, in a crowd's process.
const crowdVariable = "HOSTILE_CROWD"

// invite starts the crowds before each daemon.
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

// startCrowd starts a process of our own program.
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
		_ = json.NewDecoder(said).Decode(&r) // nothing is no report
		c.said <- r
	}()
	return c, nil
}

// leave has a crowd end.
func (c *crowd) leave() (report, error) {
	c.stdin.Close()
	select {
	case r := <-c.said:
		if err := c.process.Wait(); err != nil || r.Tried == nil {
			return r, fmt.Errorf("a hostile process ended with %w", err)
		}
		return r, nil
	case <-time.After(time.Minute):
		_ = c.process.Process.Signal(syscall.SIGQUIT) // it says what it does
		return report{}, errors.New("a hostile process does not end within a minute")
	}
}

func (c *crowd) kill() { _ = c.process.Process.Kill() }

// beCrowd is what the process of a crowd does, until its standard input ends.
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
						pause(ctx, 50*time.Millisecond) // the daemon is away, or refuses
					}
				}
			})
		}
	}
	trying.Wait()
	return json.NewEncoder(os.Stdout).Encode(r)
}
