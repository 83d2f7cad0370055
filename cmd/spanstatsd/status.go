package main

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/statustext"
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
	f.BoolVar(&o.asJSON, "json", false, "the daemon's own JSON, see docs/status.md")
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
