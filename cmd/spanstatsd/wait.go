package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spf13/cobra"
)

// waitEvery is the pause between two requests, waitTimeout the timeout of one request.
const (
	waitEvery   = 100 * time.Millisecond
	waitTimeout = 2 * time.Second
)

// waitConditions contains the conditions that a user can wait for.
var waitConditions = map[string]func(*status.Status) error{"ready": checkReady, "idle": checkIdle}

// newWaitCommand returns the command for container hooks. An image without a shell contains no
// other program for them.
func newWaitCommand() *cobra.Command {
	var daemon daemonFlags
	var atMost time.Duration
	cmd := &cobra.Command{
		Use:   "wait ready|idle",
		Short: "Wait until a daemon is ready, or until it has no clients",
		Long: `Wait for a running daemon. Use it in the lifecycle hooks of a container:

  wait ready   until the daemon accepts clients. As postStart hook of the first
               container, it delays the other containers until the socket exists.
  wait idle    until no native client is connected and no Datadog API request has
               arrived for three seconds. As preStop hook, it keeps the daemon running
               until the application has ended.

The daemon is selected as for status. The exit status is 1 after --at-most.`,
		ValidArgs: []string{"ready", "idle"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if atMost <= 0 {
				return commandline.Mistake("parse --at-most: %s is not positive", atMost)
			}
			source, err := daemon.source(waitTimeout)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), atMost)
			defer cancel()
			return waitFor(ctx, source, waitConditions[args[0]])
		},
	}
	f := cmd.Flags()
	daemon.addTo(f)
	f.DurationVar(&atMost, "at-most", 20*time.Second, "maximum time to wait")
	return cmd
}

// waitFor requests the status of a daemon until check returns nil for it. If ctx ends before, waitFor
// returns an error with the result of the last request.
func waitFor(ctx context.Context, source *statusSource, check func(*status.Status) error) error {
	var lastErr error
	for {
		_, status, err := source.get(ctx)
		if err == nil {
			err = check(status)
		}
		if err == nil {
			return nil
		}
		isCanceled := ctx.Err() != nil // then err says only that the request was canceled
		if lastErr == nil || !isCanceled {
			lastErr = err
		}
		select {
		case <-ctx.Done():
			// lastErr is not wrapped, so that the exit code of a timeout is always 1.
			return fmt.Errorf("wait for daemon: %s; raise --at-most if that is expected", lastErr.Error())
		case <-time.After(waitEvery):
		}
	}
}

// checkReady returns an error unless the daemon is ready.
func checkReady(s *status.Status) error {
	if !s.Ready {
		return errors.New("the daemon is not ready")
	}
	return nil
}

// idleTime is how long the Datadog API must have been unused. Many Datadog tracers open a connection
// per request, and send a request at least every two seconds.
const idleTime = 3 * time.Second

// checkIdle returns an error if a client is connected, or if a Datadog tracer sent a request within
// idleTime.
func checkIdle(s *status.Status) error {
	connections := s.Connections.Live // of native clients
	for _, receiver := range s.Receivers {
		connections += receiver.Connections.Live
	}
	if connections > 0 {
		return fmt.Errorf("connections are still open: %d", connections)
	}
	datadogReceiver := s.Receivers["apm"]
	if datadogReceiver == nil {
		return nil
	}
	if s.At.Sub(datadogReceiver.LastResponse) < idleTime {
		return fmt.Errorf("a client sent a request less than %s ago", idleTime)
	}
	return nil
}
