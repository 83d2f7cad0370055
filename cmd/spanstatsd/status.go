package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
	"github.com/spanstatsd/spanstatsd/internal/status/statustext"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// shortestInterval is the minimum of --interval, so that --watch does not load the daemon.
const shortestInterval = 200 * time.Millisecond

// newStatusCommand returns the command that shows the status of a daemon.
func newStatusCommand() *cobra.Command {
	var daemon daemonFlags
	var asJSON, isWatching bool
	var interval, timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the status of a running daemon: load, losses and destinations",
		Long: `Read the status of a running daemon and print it. The daemon is the one at --url,
at the address in SPANSTATSD_HTTP_ADDR, or at http://127.0.0.1:9126.

The exit status is 3 if no daemon responds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if isWatching && interval < shortestInterval {
				return commandline.Mistake("parse --interval: %s is less than the minimum of %s", interval, shortestInterval)
			}
			source, err := daemon.source(timeout)
			if err != nil {
				return err
			}
			body, status, err := source.get(cmd.Context())
			switch {
			case err != nil:
				return err
			case isWatching:
				return watch(cmd.Context(), source, interval, asJSON, body, status)
			case asJSON:
				_, err = cmd.OutOrStdout().Write(body)
			default:
				_, err = fmt.Fprint(cmd.OutOrStdout(), statustext.Render(status, nil, isColored()))
			}
			return err
		},
	}
	f := cmd.Flags()
	daemon.addTo(f)
	f.BoolVar(&asJSON, "json", false, "print the status as JSON, see docs/status-api.md")
	f.BoolVar(&isWatching, "watch", false, "repeat until interrupted; on a terminal, update in place")
	f.DurationVar(&interval, "interval", 2*time.Second, "interval between updates with --watch")
	f.DurationVar(&timeout, "timeout", 5*time.Second, "maximum time to wait for a response")
	return cmd
}

// watch shows a status and requests a new one at each interval, until it is interrupted. It
// continues if the daemon does not respond, so that an operator can watch an upgrade.
func watch(ctx context.Context, source *statusSource, interval time.Duration, asJSON bool, body []byte,
	current *status.Status,
) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	inPlace := isTerminal(os.Stdout) && !asJSON
	if inPlace {
		fmt.Print(enterScreen)
		defer fmt.Print(leaveScreen)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last *status.Status
	var unavailable, err error
	for {
		var text string
		if unavailable != nil {
			text = fmt.Sprintf("%s  no response: %s\n", time.Now().Format(time.TimeOnly),
				sanitize.Text(unavailable.Error()))
		} else {
			text = statustext.Render(current, last, isColored())
			last = current
		}
		switch {
		case inPlace:
			err = drawFrame(text)
		case unavailable != nil:
			_, err = fmt.Fprint(os.Stderr, text)
		case asJSON:
			_, err = os.Stdout.Write(body)
		default:
			_, err = fmt.Println(text)
		}
		if err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		body, current, unavailable = source.get(ctx)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// isColored reports whether stdout is a terminal with colors, and the user has not disabled them.
func isColored() bool {
	return isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Control sequences of terminals. enterScreen switches to the alternate screen, without a cursor
// and without line wrapping; leaveScreen switches back. The others draw a frame over the previous
// one.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// drawFrame draws a text on the terminal over the previous frame. It omits lines below the bottom of
// the terminal.
func drawFrame(text string) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[:min(len(lines), terminalHeight())]
	frame := strings.Join(lines, clearLine+"\r\n")
	_, err := fmt.Print(goHome + frame + clearLine + clearBelow)
	return err
}

// terminalHeight returns the number of lines of the terminal, or 24 if the terminal does not report
// its size.
func terminalHeight() int {
	size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Row == 0 {
		return 24
	}
	return int(size.Row)
}
