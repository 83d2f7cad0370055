package main

import (
	"context"
	"fmt"
	"io"
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

// shortestWatch keeps a person's look from being a load.
const shortestWatch = 200 * time.Millisecond

// statusOptions are the flags of status.
type statusOptions struct {
	daemon   daemonFlags
	asJSON   bool
	watch    bool
	interval time.Duration
	timeout  time.Duration
}

func newStatusCommand() *cobra.Command {
	o := statusOptions{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what a running daemon does, loses and holds",
		Long: `Ask a running daemon for its status and show it. The daemon is the one at --url,
or at the address in SPANSTATSD_HTTP_ADDR, or at http://127.0.0.1:9126.

Exits with 3 if no daemon answers there.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.watch && o.interval < shortestWatch {
				return commandline.Mistake("parse --interval: %s is not at least %s", o.interval,
					shortestWatch)
			}
			source, err := o.daemon.asked(o.timeout)
			if err != nil {
				return err
			}
			return o.show(cmd, source)
		},
	}
	f := cmd.Flags()
	o.daemon.add(f)
	f.BoolVar(&o.asJSON, "json", false, "the daemon's own JSON, see docs/status-api.md")
	f.BoolVar(&o.watch, "watch", false, "go on until it is interrupted; on a terminal in place, as top does")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "between two looks of --watch")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "for an answer")
	return cmd
}

func (o *statusOptions) show(cmd *cobra.Command, source *statusSource) error {
	out := cmd.OutOrStdout()
	if o.watch {
		return watch(cmd.Context(), out, source, o.interval, o.asJSON)
	}
	body, status, err := source.get(cmd.Context())
	if err != nil {
		return err
	}
	return writeStatus(out, o.asJSON, body, statustext.Render(status, nil, coloured(out)))
}

// watch shows the status again and again until it is interrupted. A daemon that was
// there and is away is waited for: watching an upgrade is what this is for.
func watch(ctx context.Context, w io.Writer, source *statusSource, interval time.Duration,
	asJSON bool,
) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	inPlace := isTerminal(w) && !asJSON
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last *status.Status
	for first := true; ; first = false {
		body, status, err := source.get(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if first {
			if err != nil {
				return err
			}
			if inPlace {
				fmt.Fprint(w, enterScreen)
				defer fmt.Fprint(w, leaveScreen)
			}
		}
		var text string
		if err != nil {
			text = fmt.Sprintf("%s  no answer: %s\n", time.Now().Format(time.TimeOnly),
				sanitize.Text(err.Error()))
		} else {
			text = statustext.Render(status, last, coloured(w))
			last = status
		}
		switch {
		case inPlace:
			err = drawFrame(w, text)
		case err == nil:
			err = writeStatus(w, asJSON, body, text+"\n")
		default:
			_, err = fmt.Fprint(os.Stderr, text)
		}
		if err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// drawFrame puts a text over the last one, as far as the window has lines.
func drawFrame(w io.Writer, text string) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[:min(len(lines), windowHeight(w))]
	_, err := io.WriteString(w, goHome+strings.Join(lines, clearLine+"\r\n")+clearLine+clearBelow)
	return err //nolint:wrapcheck // the caller says what failed
}

// writeStatus shows one status.
func writeStatus(w io.Writer, asJSON bool, body []byte, text string) (err error) {
	if asJSON {
		_, err = w.Write(body)
	} else {
		_, err = io.WriteString(w, text)
	}
	return err
}

// untilInterrupted returns a context that ends with SIGTERM or SIGINT too. A second signal ends the process.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// isTerminal tells a terminal from a file or a pipe.
func isTerminal(w io.Writer) bool {
	file, ok := fileOf(w)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// coloured says whether this is a terminal that shows colours and whose user did not ask for none.
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Control sequences for a terminal: another screen,
// without a cursor and without wrapping long lines, and back.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// windowHeight returns the lines of a terminal, or a usual number.
func windowHeight(w io.Writer) int {
	if file, ok := fileOf(w); ok {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil && size.Row > 0 {
			return int(size.Row)
		}
	}
	return 24
}
