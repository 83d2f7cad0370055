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
	dir     string // of sockets
	ledger  *ledger
	agent   *agent
	behind  *destination
	metrics *collector.Collector // takes one daemon's
	daemons []*daemon
	crowds  []*crowd
	polite  sync.WaitGroup
	stop    chan struct{} // ends the polite senders
	hurry   atomic.Bool   // those who hurry do

	mu    sync.Mutex
	past  uint64 // how often a limit was passed
	said  map[string]int
	calm  time.Time // since when nobody misbehaves; zero while somebody does
	tried map[string]uint64
	kinds map[string]bool // of faults that were tried
}

// settings are what the caller chooses.
type settings struct {
	program string // of the daemon
	length  time.Duration
	isTried func(shape string) bool
	log     io.Writer // what the daemons write
	notes   io.Writer // what is wrong
}

// run is a whole soak. The line says what was tried, and what was wrong.
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
	// A soak that can't come to its end has one all the same.
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

// noticed notes something that is past a limit. The same is said ten times.
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

// killAll ends what is left of a soak that failed.
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
