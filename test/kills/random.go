package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// killDaemons kills daemons until ctx is done and leaves one running.
func (e *episode) killDaemons(ctx context.Context, mayKill func() bool) error {
	for {
		hasTime, err := e.awaitEnd(ctx)
		if err != nil || !hasTime || (!e.isGraceful && !mayKill()) {
			return err
		}
		if e.isGraceful && e.isScraped() {
			continue
		}
		if err := e.endLife(); err != nil {
			return err
		}
		if e.random.IntN(3) == 0 {
			pause(ctx, e.randomDuration(500*time.Millisecond))
		}
		if err := e.daemon.start(); err != nil {
			return err
		}
	}
}

// awaitEnd waits until it is time to end the current life. Some lives end during startup, most within
// their first three seconds, and some when a destination receives a request. It reports whether there
// is time for another life; if not, the current daemon is listening.
func (e *episode) awaitEnd(ctx context.Context) (hasTime bool, err error) {
	if e.random.IntN(8) == 0 && !e.isGraceful {
		pause(ctx, e.randomDuration(60*time.Millisecond))
		if ctx.Err() == nil {
			return true, nil
		}
	}
	if err := e.daemon.process.wait(); err != nil {
		return false, err
	}
	pause(ctx, e.randomDuration(3*time.Second))
	if e.random.IntN(3) == 0 {
		select {
		case <-e.faults.arrived:
			pause(ctx, e.randomDuration(10*time.Millisecond))
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil, nil
}

// endLife kills the daemon, or sometimes shuts it down gracefully. Shutdown loses the spans counted
// after the last scrape, so it never shuts down a daemon that is scraped.
func (e *episode) endLife() error {
	isStopped := e.random.IntN(20) == 0 || e.isGraceful
	if isStopped && !e.isScraped() {
		e.faults.suspend(true)
		defer e.faults.suspend(false)
		return errors.Join(e.daemon.process.wait(), e.daemon.stop())
	}
	e.kills++
	return e.daemon.kill()
}

func (e *episode) isScraped() bool { return slices.Contains(e.scenario.destinations, "prometheus") }

func (e *episode) randomDuration(d time.Duration) time.Duration {
	return time.Duration(e.random.Int64N(int64(d)))
}
