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
	dir     string // directory of sockets
	ledger  *ledger
	agent   *agent
	behind  *destination
	metrics *collector.Collector // receives the metrics of one daemon
	daemons []*daemon
	crowds  []*crowd
	polite  sync.WaitGroup
	stop    chan struct{} // closed to stop the polite senders
	hurry   atomic.Bool   // true while hurried senders abandon requests

	mu    sync.Mutex
	past  uint64 // number of exceeded limits
	said  map[string]int
	calm  time.Time // when the last fault ended; zero during a fault
	tried map[string]uint64
	kinds map[string]bool // fault kinds that were tried
}

// settings are the settings chosen by the caller.
type settings struct {
	program string // daemon binary
	length  time.Duration
	isTried func(shape string) bool
	log     io.Writer // output of the daemons
	notes   io.Writer // error messages of the soak
}

// run runs a complete soak. The line reports what was tried and what was wrong.
func run(s settings) (line string, isGood bool, err error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	soak := &soak{
		settings: s, dir: dir, ledger: newLedger(), stop: make(chan struct{}), said: map[string]int{},
		tried: map[string]uint64{}, kinds: map[string]bool{},
	}
	defer soak.killAll()
	return soak.run()
}

func (s *soak) run() (line string, isGood bool, err error) {
	// Ends a soak that would never complete.
	ctx, cancel := context.WithTimeout(context.Background(), s.length+10*time.Minute)
	defer cancel()
	begun := time.Now()
	s.calm = begun
	s.hurry.Store(true)
	if err := s.begin(ctx); err != nil {
		return "", false, err
	}
	if err := s.invite(); err != nil {
		return "", false, err
	}
	during, over := context.WithTimeout(ctx, s.length)
	defer over()
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(during) })
	err = s.trouble(during, min(max(s.length/40, 500*time.Millisecond), 5*time.Second))
	over()
	watching.Wait()
	err = errors.Join(err, s.end())
	line, isGood = s.judge(time.Since(begun))
	return line, isGood && err == nil, err
}

// noticed prints an exceeded limit, at most ten times per format.
func (s *soak) noticed(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past++
	if s.said[format]++; s.said[format] <= 10 {
		s.note("past a limit: "+format, args...)
	}
}

func (s *soak) note(format string, args ...any) {
	fmt.Fprintf(s.notes, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// killAll kills the remaining processes of a failed soak.
func (s *soak) killAll() {
	for _, d := range s.daemons {
		d.kill()
	}
	for _, c := range s.crowds {
		c.kill()
	}
	if s.agent != nil {
		_ = s.agent.Close()
	}
	if s.behind != nil {
		s.behind.close()
	}
	if s.metrics != nil {
		_ = s.metrics.Close()
	}
}
