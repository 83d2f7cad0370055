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

// settings are what the caller chooses.
type settings struct {
	length, episode   time.Duration
	kills, atOnce     int
	isOrderly         bool
	firstSeed         uint64
	onlyRate          int
	onlyTo, onlyDoors string // names with commas
	onlyStarved       bool
	isPlanned         bool // daemons have lives by a plan instead of being killed at random
	onlyPlan          plan // by this one

	dir       string // of sockets, and of what was built
	program   string // the daemon
	tagged    string // one that can kill itself behind a store to its running file
	classes   string // of the Java client; empty where there is no Java
	canStarve bool
	canFill   bool
	log       io.Writer
	notes     io.Writer
}

// total is what all episodes came to.
type total struct {
	mu    sync.Mutex
	kills int
	verdict
	ends  map[string]int
	ready []time.Duration
	errs  []error
}

// run runs episodes until the time is over or all kills are done. The line says what they came to.
func (s settings) run(ctx context.Context) (line string, isGood bool, err error) {
	killing, over := context.WithTimeout(ctx, s.length)
	defer over()
	var left atomic.Int64
	left.Store(int64(s.kills))
	mayKill := func() bool { return s.kills == 0 || left.Add(-1) >= 0 }
	all := total{ends: map[string]int{}}
	var number atomic.Uint64
	var loud sync.Mutex // held by the one that has the highest rate
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

// once runs an episode and adds what it came to.
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

// try runs an episode and says what it came to.
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

// mostTries bounds the episodes that look for a shorter plan that fails as well.
const mostTries = 12

// shrink says by which command a failure may come again, with as few lives as it finds. What happens when is
// the kernel's, so a plan that holds may have been lucky.
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

// lockedWriter is written to by many.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
