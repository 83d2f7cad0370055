package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// waitEvery is the pause between two looks, and waitPatience what one may take.
const (
	waitEvery    = 100 * time.Millisecond
	waitPatience = 2 * time.Second
)

// An image without a shell has nothing else that a container's hooks could run.
func newWaitCommand() *cobra.Command {
	var addr string
	var atMost time.Duration
	cmd := &cobra.Command{
		Use:   "wait ready|idle",
		Short: "Wait until a daemon is ready, or until its tracers have left",
		Long: `Wait for a running daemon, for the hooks of a container:

  wait ready   until it accepts tracers. As postStart of the first container it
               keeps the others from starting before the socket is there.
  wait idle    until no tracer is connected. As preStop it keeps the daemon from
               being stopped before the processes that it counts for.

Exits 1 if that takes longer than --at-most.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] != "ready" && args[0] != "idle" {
				return usageError{fmt.Errorf("wait takes one word, ready or idle, but got %q; see %s --help", args, cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := applyEnvironment(cmd.Flags()); err != nil {
				return err
			}
			url, err := localURL(addr)
			if err != nil {
				return usageError{err}
			}
			look := checkReady
			if args[0] == "idle" {
				look = checkIdle
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), atMost)
			defer cancel()
			return waitFor(ctx, look, url)
		},
	}
	cmd.Flags().StringVar(&addr, "http-addr", ":9126", "the daemon's --http-addr")
	cmd.Flags().DurationVar(&atMost, "at-most", 20*time.Second, "how long to wait")
	return cmd
}

// localURL is how a daemon that listens on addr is reached from beside it.
func localURL(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("parse --http-addr: %w; give it as the daemon has it, such as :9126", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// waitFor looks until that succeeds or the context ends, and then says why the
// last look did not.
func waitFor(ctx context.Context, look func(context.Context, string) error, url string) error {
	for {
		one, cancel := context.WithTimeout(ctx, waitPatience)
		err := look(one, url)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for daemon: %w; raise --at-most if that is expected", err)
		case <-time.After(waitEvery):
		}
	}
}

func checkReady(ctx context.Context, url string) error {
	response, err := get(ctx, url+"/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New("it does not accept tracers")
	}
	return nil
}

// connectionsMetric is the line of /metrics that counts tracers.
const connectionsMetric = "spanstatsd_connections "

func checkIdle(ctx context.Context, url string) error {
	response, err := get(ctx, url+"/metrics")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if connected, found := strings.CutPrefix(lines.Text(), connectionsMetric); found {
			if connected == "0" {
				return nil
			}
			return fmt.Errorf("tracers are connected: %s", connected)
		}
	}
	return fmt.Errorf("%s/metrics does not tell how many tracers are connected", url)
}

func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}
