package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// trouble kills daemons until ctx is done and leaves one running.
func (e *episode) trouble(ctx context.Context, mayKill func() bool) error {
	for {
		hasTime, err := e.await(ctx)
		if err != nil || !hasTime || (!e.isOrderly && !mayKill()) {
			return err
		}
		if e.isOrderly && e.isScraped() {
			continue
		}
		if err := e.endLife(); err != nil {
			return err
		}
		if e.random.IntN(3) == 0 {
			pause(ctx, e.upTo(500*time.Millisecond))
		}
		if err := e.daemon.start(); err != nil {
			return err
		}
	}
}

// await waits until the current life is to end. Some lives end during startup, most within their first
// three seconds, and some when a destination receives a request. It reports whether there is time for
// another life; if not, the current daemon is listening.
func (e *episode) await(ctx context.Context) (hasTime bool, err error) {
	if e.random.IntN(8) == 0 && !e.isOrderly {
		pause(ctx, e.upTo(60*time.Millisecond))
		if ctx.Err() == nil {
			return true, nil
		}
	}
	if err := e.daemon.process.wait(); err != nil {
		return false, err
	}
	pause(ctx, e.upTo(3*time.Second))
	if e.random.IntN(3) == 0 {
		select {
		case <-e.moods.arrived:
			pause(ctx, e.upTo(10*time.Millisecond))
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil, nil
}

// endLife kills the daemon, or sometimes shuts it down gracefully. Shutdown loses the spans counted
// after the last scrape, so it never shuts down a daemon that is scraped.
func (e *episode) endLife() error {
	isStopped := e.random.IntN(20) == 0 || e.isOrderly
	if isStopped && !e.isScraped() {
		e.moods.calm(true)
		defer e.moods.calm(false)
		return errors.Join(e.daemon.process.wait(), e.daemon.stop())
	}
	e.kills++
	return e.daemon.kill()
}

func (e *episode) isScraped() bool { return slices.Contains(e.scenario.destinations, "prometheus") }

func (e *episode) upTo(d time.Duration) time.Duration {
	return time.Duration(e.random.Int64N(int64(d)))
}
