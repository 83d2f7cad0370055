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

// life is the planned life of one daemon process. The plan depends on the seed alone. Its printed form
// is valid as the value of -plan.
type life struct {
	End          string        `json:"end"`             // kind of end, one of the constants below
	Store        int           `json:"store,omitempty"` // the daemon kills itself after this number of stores to its recovery file; 0 means never
	Uptime       time.Duration `json:"lasts"`           // time from the start until the first signal
	SignalGap    time.Duration `json:"more,omitempty"`  // between the two signals of an end
	RestartDelay time.Duration `json:"gap,omitempty"`   // time from the end until the next daemon starts
	File         string        `json:"file,omitempty"`  // damage to recovery files after the end: torn, foreign, gone
}

// The ways in which a life can end. A Prometheus destination supports only the first two, because a
// graceful shutdown loses the spans counted after the last scrape.
const (
	killed     = "kill"
	paused     = "pause"     // paused before it is killed
	stopped    = "stop"      // graceful shutdown
	stopKilled = "stop-kill" // graceful shutdown, killed if it takes too long
	stopTwice  = "stop-stop" // shutdown that a second signal aborts
	replaced   = "replace"   // the next daemon starts during the shutdown
	outlived   = "outlived"  // the same, and the old daemon is killed if it takes too long; the next one may end first
)

// plan lists the lives of an episode in order.
type plan []life

// plan draws the lives of an episode.
func (c scenario) plan() plan {
	r := rand.New(rand.NewPCG(c.seed, 5))
	randomDuration := func(d time.Duration) time.Duration {
		return time.Duration(r.Int64N(int64(d))).Round(time.Millisecond)
	}
	ends := []string{
		killed, killed, killed, paused, stopped, stopKilled, stopKilled, stopTwice, replaced, replaced,
		outlived, outlived, outlived,
	}
	if slices.Contains(c.destinations, "prometheus") {
		ends = ends[:4]
	}
	damagesFile := r.IntN(6) == 0
	lives := make(plan, 3+r.IntN(6))
	for i := range lives {
		l := life{
			End: ends[r.IntN(len(ends))], Uptime: randomDuration(2500 * time.Millisecond),
			SignalGap: randomDuration(400 * time.Millisecond),
		}
		switch r.IntN(6) {
		case 0:
			l.Uptime = randomDuration(60 * time.Millisecond) // during startup
		case 1, 2:
			l.Store = 1 << r.IntN(11)
			l.Store += r.IntN(l.Store)
		}
		if r.IntN(3) == 0 {
			l.RestartDelay = randomDuration(500 * time.Millisecond)
		}
		if damagesFile && r.IntN(2) == 0 {
			l.File = []string{"torn", "foreign", "gone"}[r.IntN(3)]
		}
		lives[i] = l
	}
	return lives
}

// runPlan runs daemons according to the plan and leaves the last one running.
func (e *episode) runPlan(ctx context.Context) error {
	for _, l := range e.lives {
		pause(ctx, l.Uptime)
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
		pause(ctx, l.RestartDelay)
		if err := e.startNext(); err != nil {
			return err
		}
	}
	e.ending.Wait()
	return e.ensureRunning()
}

// startNext starts the daemon of the next planned life.
func (e *episode) startNext() error {
	e.daemon.killAt = 0
	if e.startedLives < len(e.lives) {
		e.daemon.killAt = e.lives[e.startedLives].Store
	}
	e.startedLives++
	return e.daemon.start()
}

// ensureRunning ensures that the running daemon does not kill itself.
func (e *episode) ensureRunning() error {
	if e.daemon.killAt > 0 {
		e.startedLives = len(e.lives)
		if err := errors.Join(e.daemon.process.endWith(syscall.SIGKILL), e.startNext()); err != nil {
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
		e.ends["killed after a store"]++
	case l.File != "":
		e.ends[l.End+", file "+l.File]++
	default:
		e.ends[l.End]++
	}
	if l.End != killed && l.End != paused {
		// A daemon that shuts down tries each destination once. It reports rejected spans as
		// abandoned, but not the clients that sent them.
		e.faults.suspend(true)
		if l.End != outlived {
			defer e.faults.suspend(false)
		}
		select {
		case <-p.listens:
		case <-p.ended:
		}
	}
	first, second := syscall.SIGKILL, syscall.Signal(0)
	switch l.End {
	case paused:
		_ = p.Process.Signal(syscall.SIGSTOP)
		pause(ctx, l.SignalGap)
		first, second = syscall.SIGCONT, syscall.SIGKILL
	case stopped:
		first = syscall.SIGTERM
	case stopKilled:
		first, second = syscall.SIGTERM, syscall.SIGKILL
	case stopTwice:
		first, second = syscall.SIGTERM, syscall.SIGTERM
	case replaced, outlived:
		return true, e.replace(l)
	}
	if second != 0 {
		_ = p.Process.Signal(first)
		pause(ctx, l.SignalGap)
		first = second
	}
	return false, p.endWith(first)
}

// endWith ends the daemon with a signal. A second signal makes it exit with an error.
func (p *process) endWith(s syscall.Signal) error {
	_, err := p.end(s)
	if p.hasEnded() && strings.Contains(p.lastLine(), "by a second signal") {
		return nil
	}
	return err
}

// replace starts the next daemon while the current one shuts down, and waits until the current one has
// ended. With the end outlived it does not wait, but kills the current one after a while. A new daemon
// that finds its socket in use exits immediately and is restarted.
func (e *episode) replace(l life) error {
	old := e.daemon.process
	_ = old.Process.Signal(syscall.SIGTERM)
	if l.End == outlived {
		e.ending.Go(func() {
			defer e.faults.suspend(false)
			time.Sleep(l.SignalGap)
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
	for ; e.daemon.process.isSocketInUse(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return old.failed("was not replaced within a minute")
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

// isSocketInUse waits until the daemon listens or has ended. It reports whether it ended because
// another process listens on its socket.
func (p *process) isSocketInUse() bool {
	select {
	case <-p.listens:
		return false
	case <-p.ended:
		return strings.Contains(p.lastLine(), "another process listens")
	}
}

// damage truncates, replaces or removes the recovery files of ended daemons.
func (e *episode) damage(kind string) error {
	if e.diskIsFull {
		return nil
	}
	names, err := filepath.Glob(e.daemon.socket() + ".running-*")
	for _, name := range names {
		switch kind {
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

// damagesFile reports whether the plan damages a recovery file, so that daemons can't report all
// losses.
func (p plan) damagesFile() bool {
	return slices.ContainsFunc(p, func(l life) bool { return l.File != "" })
}

// removesFile reports whether the plan removes a recovery file. A client that gets no outcome after a
// bye assumes that its spans were delivered.
func (p plan) removesFile() bool {
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
