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
	length, episode   time.Duration
	kills, atOnce     int
	isOrderly         bool
	firstSeed         uint64
	onlyRate          int
	onlyTo, onlyDoors string // comma-separated names
	onlyStarved       bool
	isPlanned         bool // daemons live by plans instead of being killed at random
	onlyPlan          plan // run only this plan

	dir       string   // directory for sockets and built programs
	program   string   // daemon binary
	tagged    string   // program that can kill itself after a store to its recovery file
	classes   string   // classes of the Java client; empty without Java
	python    []string // command of the Python client; nil without it
	node      []string // command of the Node.js client; nil without it
	canStarve bool
	canFill   bool
	log       io.Writer
	notes     io.Writer
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
func (s settings) run(ctx context.Context) (line string, isGood bool, err error) {
	killing, over := context.WithTimeout(ctx, s.length)
	defer over()
	var left atomic.Int64
	left.Store(int64(s.kills))
	mayKill := func() bool { return s.kills == 0 || left.Add(-1) >= 0 }
	all := total{ends: map[string]int{}}
	var number atomic.Uint64
	var loud sync.Mutex // held by the episode with the highest rate
	var running sync.WaitGroup
	for range s.atOnce {
		running.Go(func() {
			for killing.Err() == nil && (s.kills == 0 || left.Load() > 0) {
				c := s.draw(s.firstSeed + number.Add(1) - 1)
				if c.rate >= loudRate {
					if !loud.TryLock() {
						continue
					}
				}
				s.once(ctx, killing, c, mayKill, &all)
				if c.rate >= loudRate {
					loud.Unlock()
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
		fmt.Fprintf(s.notes, "ready again after %s (median of %d), %s (99 %%), %s (worst)\n",
			all.ready[n/2].Round(time.Millisecond), n, all.ready[n*99/100].Round(time.Millisecond),
			all.ready[n-1].Round(time.Millisecond))
	}
	for _, how := range slices.Sorted(maps.Keys(all.ends)) {
		fmt.Fprintf(s.notes, "%d times %s\n", all.ends[how], how)
	}
	fmt.Fprintf(s.notes, "%d spans published, %d of them could not be kept and died with a daemon\n",
		all.Published, all.Died)
	what := "kills"
	if s.isPlanned {
		what = "lives"
	}
	line = fmt.Sprintf("%s %d: lost %d, twice %d, ambiguous %d, counted as lost %d of %d",
		what, all.kills, all.Lost, all.Twice, all.Ambiguous, all.Named, all.Missing)
	err = errors.Join(all.errs...)
	return line, all.isGood() && all.Published > 0 && err == nil, err
}

// once runs an episode and adds its result to the total.
func (s settings) once(ctx, killing context.Context, c scenario, mayKill func() bool, all *total) {
	e, v, err := s.try(ctx, killing, c, mayKill)
	all.mu.Lock()
	all.kills += e.kills
	for how, n := range e.ends {
		all.ends[how] += n
	}
	all.verdict.add(v)
	all.ready = append(all.ready, e.daemon.ready...)
	if err != nil {
		all.errs = append(all.errs, fmt.Errorf("seed %d: %w", c.seed, err))
	}
	all.mu.Unlock()
	if (err != nil || !v.isGood()) && len(e.lives) > 1 && len(s.onlyPlan) == 0 {
		s.shrink(ctx, c, e.lives)
	}
}

// try runs an episode and returns its result.
func (s settings) try(
	ctx, killing context.Context, c scenario, mayKill func() bool,
) (*episode, verdict, error) {
	var v verdict
	e, err := newEpisode(s, c)
	if err == nil {
		err = e.run(ctx, killing, mayKill)
	}
	if err == nil {
		v = e.judge(func(format string, args ...any) {
			fmt.Fprintf(s.notes, "seed %d: "+format+"\n", append([]any{c.seed}, args...)...)
		})
	}
	e.close()
	fmt.Fprintf(s.notes, "seed %d: %v: %d kills, %v\n", c.seed, c, e.kills, v)
	return e, v, err
}

// mostTries limits the episodes run to find a shorter plan that fails.
const mostTries = 12

// shrink prints a command that reproduces the failure with as few lives as it finds. The timing depends
// on the kernel, so a shorter plan that passes may only have been lucky.
func (s settings) shrink(ctx context.Context, c scenario, lives plan) {
	tries := 0
	fails := func(shorter plan) bool {
		if tries++; tries > mostTries || ctx.Err() != nil {
			return false
		}
		with := s
		with.onlyPlan = shorter
		_, v, err := with.try(ctx, ctx, c, nil)
		return err != nil || !v.isGood()
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
	fmt.Fprintf(s.notes, "seed %d: it fails with go run . -lives -seed %d -plan '%s'\n", c.seed, c.seed,
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
