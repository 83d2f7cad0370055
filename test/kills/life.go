package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// life is the planned fate of one daemon. The plan depends on the seed alone. Its printed form is valid
// as the value of -plan.
type life struct {
	End   string        `json:"end"`             // one of ends
	Store int           `json:"store,omitempty"` // it kills itself behind that one to its running file
	Lasts time.Duration `json:"lasts"`           // from its start until its end begins
	More  time.Duration `json:"more,omitempty"`  // between the two parts of an end
	Gap   time.Duration `json:"gap,omitempty"`   // until the next one starts
	File  string        `json:"file,omitempty"`  // what becomes of running files behind: torn, foreign, gone
}

// The ways in which a life can end. A Prometheus destination supports only the first two, because a
// graceful shutdown loses the spans counted after the last scrape.
const (
	killed     = "kill"
	paused     = "pause"     // it stands still before it is killed
	stopped    = "stop"      // in order
	stopKilled = "stop-kill" // stopped, and killed before it is done, if it is not that fast
	stopTwice  = "stop-stop" // stopped by two signals: it gives up at the second
	replaced   = "replace"   // the next one starts while this one stops
	outlived   = "outlived"  // the same, and this one is killed if it does not stop fast; the next one may die first
)

// plan lists the lives of an episode in order.
type plan []life

// plan draws the lives of an episode.
func (c scenario) plan() plan {
	r := rand.New(rand.NewPCG(c.seed, 5))
	upTo := func(d time.Duration) time.Duration {
		return time.Duration(r.Int64N(int64(d))).Round(time.Millisecond)
	}
	ends := []string{
		killed, killed, killed, paused, stopped, stopKilled, stopKilled, stopTwice, replaced, replaced,
		outlived, outlived, outlived,
	}
	if slices.Contains(c.destinations, "prometheus") {
		ends = ends[:4]
	}
	isDamaged := r.IntN(6) == 0
	lives := make(plan, 3+r.IntN(6))
	for i := range lives {
		l := life{
			End: ends[r.IntN(len(ends))], Lasts: upTo(2500 * time.Millisecond),
			More: upTo(400 * time.Millisecond),
		}
		switch r.IntN(6) {
		case 0:
			l.Lasts = upTo(60 * time.Millisecond) // during startup
		case 1, 2:
			l.Store = 1 << r.IntN(11)
			l.Store += r.IntN(l.Store)
		}
		if r.IntN(3) == 0 {
			l.Gap = upTo(500 * time.Millisecond)
		}
		if isDamaged && r.IntN(2) == 0 {
			l.File = []string{"torn", "foreign", "gone"}[r.IntN(3)]
		}
		lives[i] = l
	}
	return lives
}

// live runs daemons according to the plan and leaves the last one running.
func (e *episode) live(ctx context.Context) error {
	for _, l := range e.lives {
		pause(ctx, l.Lasts)
		if ctx.Err() != nil {
			break
		}
		isNextStarted, err := e.finish(ctx, l)
		if err != nil {
			return fmt.Errorf("end of life %+v: %w", l, err)
		}
		if isNextStarted {
			continue
		}
		if err := e.damage(l.File); err != nil {
			return err
		}
		pause(ctx, l.Gap)
		if err := e.startNext(); err != nil {
			return err
		}
	}
	e.ending.Wait()
	return e.lastLife()
}

// startNext starts the daemon of the next planned life.
func (e *episode) startNext() error {
	e.daemon.killAt = 0
	if e.begun < len(e.lives) {
		e.daemon.killAt = e.lives[e.begun].Store
	}
	e.begun++
	return e.daemon.start()
}

// lastLife ensures that the running daemon does not kill itself.
func (e *episode) lastLife() error {
	if e.daemon.killAt > 0 {
		e.begun = len(e.lives)
		if err := errors.Join(e.daemon.process.endBy(syscall.SIGKILL), e.startNext()); err != nil {
			return err
		}
	}
	return e.daemon.process.wait()
}

// finish ends a life and reports whether the next one is already running.
func (e *episode) finish(ctx context.Context, l life) (isNextStarted bool, err error) {
	p := e.daemon.process
	e.kills++
	switch {
	case p.hasEnded():
		e.ends["killed behind a store"]++
	case l.File != "":
		e.ends[l.End+", file "+l.File]++
	default:
		e.ends[l.End]++
	}
	if l.End != killed && l.End != paused {
		// A daemon that shuts down tries each destination once. It reports refused spans as given up,
		// but not the clients that sent them.
		e.moods.calm(true)
		if l.End != outlived {
			defer e.moods.calm(false)
		}
		select {
		case <-p.listens:
		case <-p.ended:
		}
	}
	first, then := syscall.SIGKILL, syscall.Signal(0)
	switch l.End {
	case paused:
		_ = p.Process.Signal(syscall.SIGSTOP)
		pause(ctx, l.More)
		first, then = syscall.SIGCONT, syscall.SIGKILL
	case stopped:
		first = syscall.SIGTERM
	case stopKilled:
		first, then = syscall.SIGTERM, syscall.SIGKILL
	case stopTwice:
		first, then = syscall.SIGTERM, syscall.SIGTERM
	case replaced, outlived:
		return true, e.replace(l)
	}
	if then != 0 {
		_ = p.Process.Signal(first)
		pause(ctx, l.More)
		first = then
	}
	return false, p.endBy(first)
}

// endBy ends the daemon with a signal. A second signal makes it exit with an error.
func (p *process) endBy(s syscall.Signal) error {
	_, err := p.end(s)
	if p.hasEnded() && strings.Contains(p.lastLine(), "by a second signal") {
		return nil
	}
	return err
}

// replace starts the next daemon while the current one shuts down, and waits until the current one has
// ended. With the end outlived it does not wait, but kills the current one after a while. A new daemon that
// finds its socket in use exits immediately and is restarted.
func (e *episode) replace(l life) error {
	old := e.daemon.process
	_ = old.Process.Signal(syscall.SIGTERM)
	if l.End == outlived {
		e.ending.Go(func() {
			defer e.moods.calm(false)
			time.Sleep(l.More)
			if _, err := old.end(syscall.SIGKILL); err != nil {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.errs = append(e.errs, err)
			}
		})
	}
	if err := e.startNext(); err != nil {
		return err
	}
	deadline := time.Now().Add(time.Minute)
	for ; e.daemon.process.isRefused(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return old.failed("is not replaced within a minute")
		}
		if err := e.daemon.start(); err != nil {
			return err
		}
	}
	if l.End == outlived {
		return nil
	}
	_, err := old.end()
	return err
}

// isRefused waits until the daemon listens or has ended. It reports whether it ended because another
// process listens on its socket.
func (p *process) isRefused() bool {
	select {
	case <-p.listens:
		return false
	case <-p.ended:
		return strings.Contains(p.lastLine(), "another process listens")
	}
}

// damage truncates, replaces or removes the recovery files of ended daemons.
func (e *episode) damage(how string) error {
	if e.isFull {
		return nil
	}
	names, err := filepath.Glob(e.daemon.socket() + ".running-*")
	for _, name := range names {
		switch how {
		case "torn":
			err = errors.Join(err, os.Truncate(name, e.random.Int64N(100_000)))
		case "foreign":
			err = errors.Join(err, os.WriteFile(name, []byte("another version's"), 0o600))
		case "gone":
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// isDamaged reports whether the plan damages a recovery file, so that daemons can't report all losses.
func (p plan) isDamaged() bool {
	return slices.ContainsFunc(p, func(l life) bool { return l.File != "" })
}

// isGone reports whether the plan removes a recovery file. A client that gets no outcome after a bye
// assumes that its spans were delivered.
func (p plan) isGone() bool {
	return slices.ContainsFunc(p, func(l life) bool { return l.File == "gone" })
}

// text returns the plan in the format of -plan.
func (p plan) text() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(b)
}
