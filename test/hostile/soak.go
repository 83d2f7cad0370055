package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
)

// soak is one run.
type soak struct {
	settings
	dir         string // directory of sockets
	ledger      *ledger
	agent       *agent
	destination *destination
	metrics     *collector.Collector // receives the metrics of one daemon
	daemons     []*daemon
	hostile     []*hostileProcess
	senders     sync.WaitGroup
	stop        chan struct{} // closed to stop the well-behaved senders
	abandons    atomic.Bool   // true while impatient senders abandon requests

	mu           sync.Mutex
	violations   uint64            // number of violated limits
	reported     map[string]int    // number of violations by message format
	healthySince time.Time         // time when the last fault ended; zero during a fault
	attempts     map[string]uint64 // by shape
	faultKinds   map[string]bool   // fault kinds that were tried
}

// settings are the settings chosen by the caller.
type settings struct {
	program    string // daemon binary
	duration   time.Duration
	isSelected func(shape string) bool
	log        io.Writer // output of the daemons
	messages   io.Writer // error messages of the soak
}

// run runs a complete soak. The line reports the attempts and the errors.
func run(s settings) (line string, passed bool, err error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	soak := &soak{
		settings: s, dir: dir, ledger: newLedger(), stop: make(chan struct{}), reported: map[string]int{},
		attempts: map[string]uint64{}, faultKinds: map[string]bool{},
	}
	defer soak.killAll()
	return soak.run()
}

func (s *soak) run() (line string, passed bool, err error) {
	// Ends a soak that would never complete.
	ctx, cancel := context.WithTimeout(context.Background(), s.duration+10*time.Minute)
	defer cancel()
	started := time.Now()
	s.healthySince = started
	s.abandons.Store(true)
	if err := s.startAll(ctx); err != nil {
		return "", false, err
	}
	if err := s.startHostile(); err != nil {
		return "", false, err
	}
	during, over := context.WithTimeout(ctx, s.duration)
	defer over()
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(during) })
	err = s.disrupt(during, min(max(s.duration/40, 500*time.Millisecond), 5*time.Second))
	over()
	watching.Wait()
	err = errors.Join(err, s.stopAll())
	line, passed = s.summarize(time.Since(started))
	return line, passed && err == nil, err
}

// violation counts a violated limit and prints it, at most ten times per format.
func (s *soak) violation(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations++
	if s.reported[format]++; s.reported[format] <= 10 {
		s.logf("over a limit: "+format, args...)
	}
}

func (s *soak) logf(format string, args ...any) {
	fmt.Fprintf(s.messages, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// killAll kills the remaining processes of a failed soak.
func (s *soak) killAll() {
	for _, d := range s.daemons {
		d.kill()
	}
	for _, p := range s.hostile {
		p.kill()
	}
	if s.agent != nil {
		_ = s.agent.Close()
	}
	if s.destination != nil {
		s.destination.close()
	}
	if s.metrics != nil {
		_ = s.metrics.Close()
	}
}
