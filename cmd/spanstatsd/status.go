package main

import (
	"io"
	"os"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spf13/cobra"
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
		Args: commandline.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.watch && o.interval < shortestWatch {
				return commandline.Mistake("parse --interval: %s is not at least %s", o.interval, shortestWatch)
			}
			if o.timeout <= 0 {
				return commandline.Mistake("parse --timeout: %s is not positive", o.timeout)
			}
			source, err := o.daemon.source(o.timeout)
			if err != nil {
				return commandline.AsUsage(err)
			}
			return o.show(cmd, source)
		},
	}
	f := cmd.Flags()
	o.daemon.add(f)
	f.BoolVar(&o.asJSON, "json", false, "the daemon's own JSON, see docs/status.md")
	f.BoolVar(&o.watch, "watch", false, "go on until it is interrupted; on a terminal in place, as top does")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "between two looks of --watch")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "for an answer")
	return cmd
}

func (o *statusOptions) show(cmd *cobra.Command, source *statusSource) error {
	out := cmd.OutOrStdout()
	if o.watch {
		return o.watchStatus(cmd.Context(), out, source)
	}
	body, status, err := source.get(cmd.Context())
	if err != nil {
		return err
	}
	return o.write(out, body, renderStatus(status, nil, newPaint(out)))
}

// write shows one status.
func (o *statusOptions) write(w io.Writer, body []byte, text string) (err error) {
	if o.asJSON {
		_, err = w.Write(body)
	} else {
		_, err = io.WriteString(w, text)
	}
	return err
}

// newPaint colours a terminal whose user did not ask it not to.
func newPaint(w io.Writer) paint {
	return paint(isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// rateSince is how fast a count rose since an earlier status; false where there was
// none, or where the daemon is another one since.
func rateSince(last, now *health.Status, count func(*health.Status) uint64) (perSecond float64, known bool) {
	if last == nil || !last.Started.Equal(now.Started) || !now.At.After(last.At) {
		return 0, false
	}
	return (float64(count(now)) - float64(count(last))) / now.At.Sub(last.At).Seconds(), true
}
