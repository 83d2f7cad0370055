package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// supervisor runs the processes of a tool, one after another. It restarts a process that has exited by itself, as Kubernetes does.
type supervisor struct {
	bench
	candidate *candidate
	group     *controlGroup
	over      chan struct{} // closed when no process must be restarted any more
	watching  sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	process  *process
	earlier  []*process
	isEnding bool // the process is meant to end
	crashes  int
	losses   *lossLog
}

// supervise starts a tool, and returns when it receives spans.
func supervise(b bench, c *candidate) (*supervisor, error) {
	s := &supervisor{bench: b, candidate: c, over: make(chan struct{}), losses: newLossLog(c.counters)}
	name := "judge" + strings.ReplaceAll(b.dir, "/", "-")
	var err error
	if s.group, err = newControlGroup(name, b.limits); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		s.group.remove()
		return nil, err
	}
	s.watching.Go(s.watch)
	return s, nil
}

// start starts a process and waits until it receives spans.
func (s *supervisor) start() error {
	p, err := startProcess(s.dir, s.group, s.candidate.environ, s.candidate.command...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	network := "tcp"
	if strings.HasPrefix(s.candidate.ready, "/") {
		network = "unix"
	}
	const startTimeout = time.Minute
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		connection, err := net.Dial(network, s.candidate.ready)
		if err == nil {
			return connection.Close()
		}
		if p.hasEnded() || time.Now().After(deadline) {
			p.kill()
			return fmt.Errorf("start %s: it does not receive spans: %s", s.candidate.command[0], p.lastLines())
		}
	}
}

// end ends the running process in the given way, and returns after it has ended.
func (s *supervisor) end(how func(*process)) {
	s.mu.Lock()
	s.isEnding = true
	p := s.process
	s.mu.Unlock()
	how(p)
}

// replace starts another process after one has ended.
func (s *supervisor) replace() {
	s.noteEnd()
	s.candidate.output.restarted()
	if err := s.start(); err != nil {
		fmt.Fprintln(os.Stderr, err) // the score will be bad
	}
	s.mu.Lock()
	s.isEnding = false
	s.mu.Unlock()
}

// noteEnd keeps the figures of a process that has ended.
func (s *supervisor) noteEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.earlier = append(s.earlier, s.process)
	s.losses.restarted(s.process.lastLines())
}

// watch samples memory and counters, and replaces a process that has crashed.
func (s *supervisor) watch() {
	const interval = 250 * time.Millisecond
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-s.over:
			return
		}
		if s.hasCrashed() {
			s.replace()
		}
	}
}

// hasCrashed samples a running process, and reports whether it has ended by itself.
func (s *supervisor) hasCrashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.process.hasEnded() {
		s.process.sample()
		s.losses.update()
		return false
	}
	if s.isEnding {
		return false
	}
	s.crashes++
	return true
}

// stop ends the last process with SIGTERM.
func (s *supervisor) stop() {
	s.end((*process).stop)
	close(s.over)
	s.watching.Wait()
	s.noteEnd()
	s.group.remove()
}

// cost returns the CPU time of all processes and the highest memory of any. All have ended.
func (s *supervisor) cost() (cpu time.Duration, peakMiB float64) {
	for _, p := range s.earlier {
		cpu += p.cpu()
		peakMiB = max(peakMiB, float64(p.peakKiB.Load())/1024)
	}
	return cpu, peakMiB
}
