package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// settings are the settings chosen by the caller.
type settings struct {
	duration, episode               time.Duration
	kills, parallel                 int
	isGraceful                      bool
	firstSeed                       uint64
	onlyRate                        int
	onlyDestinations, onlyReceivers string // comma-separated names
	onlyOOM                         bool
	isPlanned                       bool // daemons follow plans instead of being killed at random
	onlyPlan                        plan // run only this plan

	dir             string   // directory for sockets and built programs
	program         string   // daemon binary
	selfKilling     string   // daemon binary that can kill itself after a store to its recovery file
	classes         string   // classes of the Java client; empty without Java
	python          []string // command of the Python client; nil without it
	node            []string // command of the Node.js client; nil without it
	canUseOOMKiller bool
	canLimitDisk    bool
	log             io.Writer // output of the daemons
	messages        io.Writer // output of this program
}

// total is the sum of all episodes.
type total struct {
	mu    sync.Mutex
	kills int
	verdict
	ends  map[string]int
	ready []time.Duration
	errs  []error
}

// run runs episodes until the time is over or the number of kills is reached. The line reports the
// result.
func (s settings) run(ctx context.Context) (line string, passed bool, err error) {
	killing, cancel := context.WithTimeout(ctx, s.duration)
	defer cancel()
	var remaining atomic.Int64
	remaining.Store(int64(s.kills))
	mayKill := func() bool { return s.kills == 0 || remaining.Add(-1) >= 0 }
	all := total{ends: map[string]int{}}
	var number atomic.Uint64
	var highRateLock sync.Mutex // held by the episode with the highest rate
	var running sync.WaitGroup
	for range s.parallel {
		running.Go(func() {
			for killing.Err() == nil && (s.kills == 0 || remaining.Load() > 0) {
				c := s.draw(s.firstSeed + number.Add(1) - 1)
				if c.rate >= highRate {
					if !highRateLock.TryLock() {
						continue
					}
				}
				s.runAndAdd(ctx, killing, c, mayKill, &all)
				if c.rate >= highRate {
					highRateLock.Unlock()
				}
				if len(s.onlyPlan) > 0 {
					return
				}
			}
		})
	}
	running.Wait()
	if n := len(all.ready); n > 0 {
		slices.Sort(all.ready)
		fmt.Fprintf(s.messages, "time to readiness: %s (median of %d), %s (99 %%), %s (worst)\n",
			all.ready[n/2].Round(time.Millisecond), n, all.ready[n*99/100].Round(time.Millisecond),
			all.ready[n-1].Round(time.Millisecond))
	}
	for _, end := range slices.Sorted(maps.Keys(all.ends)) {
		fmt.Fprintf(s.messages, "%d times %s\n", all.ends[end], end)
	}
	fmt.Fprintf(s.messages, "%d spans published, %d of them exceeded the capacity of clients and were lost with a daemon\n",
		all.Published, all.Died)
	unit := "kills"
	if s.isPlanned {
		unit = "lives"
	}
	line = fmt.Sprintf("%s %d: lost %d, counted twice %d, ambiguous %d, reported as lost %d of %d",
		unit, all.kills, all.Lost, all.Twice, all.Ambiguous, all.Reported, all.Missing)
	err = errors.Join(all.errs...)
	return line, all.passed() && all.Published > 0 && err == nil, err
}

// runAndAdd runs an episode and adds its result to the total.
func (s settings) runAndAdd(ctx, killing context.Context, c scenario, mayKill func() bool, all *total) {
	e, v, err := s.runEpisode(ctx, killing, c, mayKill)
	all.mu.Lock()
	all.kills += e.kills
	for end, n := range e.ends {
		all.ends[end] += n
	}
	all.verdict.add(v)
	all.ready = append(all.ready, e.daemon.ready...)
	if err != nil {
		all.errs = append(all.errs, fmt.Errorf("seed %d: %w", c.seed, err))
	}
	all.mu.Unlock()
	if (err != nil || !v.passed()) && len(e.lives) > 1 && len(s.onlyPlan) == 0 {
		s.shrink(ctx, c, e.lives)
	}
}

// runEpisode runs an episode and returns its result.
func (s settings) runEpisode(
	ctx, killing context.Context, c scenario, mayKill func() bool,
) (*episode, verdict, error) {
	var v verdict
	e, err := newEpisode(s, c)
	if err == nil {
		err = e.run(ctx, killing, mayKill)
	}
	if err == nil {
		v = e.compare(func(format string, args ...any) {
			fmt.Fprintf(s.messages, "seed %d: "+format+"\n", append([]any{c.seed}, args...)...)
		})
	}
	e.close()
	fmt.Fprintf(s.messages, "seed %d: %v: %d kills, %v\n", c.seed, c, e.kills, v)
	return e, v, err
}

// maxAttempts limits the episodes run to find a shorter plan that fails.
const maxAttempts = 12

// shrink prints a command that reproduces the failure with as few lives as it finds. The timing depends
// on the kernel, so a shorter plan can pass by chance.
func (s settings) shrink(ctx context.Context, c scenario, lives plan) {
	attempts := 0
	fails := func(shorter plan) bool {
		if attempts++; attempts > maxAttempts || ctx.Err() != nil {
			return false
		}
		shortened := s
		shortened.onlyPlan = shorter
		_, v, err := shortened.runEpisode(ctx, ctx, c, nil)
		return err != nil || !v.passed()
	}
	for size := max(len(lives)/2, 1); size >= 1; size /= 2 {
		for at := 0; at+size <= len(lives) && len(lives) > size; {
			shorter := slices.Delete(slices.Clone(lives), at, at+size)
			if !fails(shorter) {
				at += size
				continue
			}
			lives = shorter
		}
	}
	fmt.Fprintf(s.messages, "seed %d: reproduce with go run . -lives -seed %d -plan '%s'\n", c.seed, c.seed,
		lives.text())
}

// lockedWriter is a writer for concurrent use.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
