package main

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/lab/checkclient"
	"github.com/spanstatsd/spanstatsd/lab/standin"
	"github.com/spf13/cobra"
)

func newCheckClientCommand() *cobra.Command {
	at := socket.Config{Mode: 0o660}
	config := checkclient.Config{
		Now: time.Now, Version: version,
		Interval: aggregate.DefaultConfig().FlushInterval,
	}
	var connections int
	cmd := &cobra.Command{
		Use:   "check-client",
		Short: "Tell the author of a tracer what the daemon understands of it",
		Long: `Listen where a tracer can connect, as the daemon would, and say of each message what
was understood, what of it would be normalized, what it costs and what is malformed:
the reason, the place, and the bytes around it. Nothing is counted and no agent is
needed. docs/write-a-client.md shows it at work.

It ends after --connections, or when it is interrupted. Exits with 1 if a connection
sent what is malformed or what would be dropped, or if none came.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if connections < 0 || config.PerSecond < 0 {
				return commandline.Mistake("parse --connections and --per-second: %d and %d may not be "+
					"negative", connections, config.PerSecond)
			}
			listener, err := socket.Listen(at)
			if err != nil {
				return err
			}
			defer listener.Close()
			info := standin.DefaultInfo()
			config.Out, config.Features = cmd.OutOrStdout(), wire.Features{
				Stats: true, PeerTags: info.PeerTags, SpanKinds: info.SpanKinds,
				ObfuscationVersion: uint64(info.ObfuscationVersion),
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "listening on %s\n", sanitize.Text(at.Path))
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			return checkclient.New(config).Serve(ctx, listener, connections)
		},
	}
	f := cmd.Flags()
	f.StringVar(&at.Path, "socket", cmp.Or(os.Getenv(client.SocketEnv), "/tmp/spanstatsd-check.sock"),
		"Unix socket that the tracer is to connect to, by default that of "+client.SocketEnv)
	f.IntVar(&connections, "connections", 0, "end when so many have come and left; 0: when it is interrupted")
	f.BoolVar(&config.Dies, "die", false,
		"die as a daemon that is killed, and see what the tracer hands over again")
	f.BoolVar(&config.JSON, "json", false, "one object a line")
	f.BoolVar(&config.Quiet, "quiet", false, "print only what is malformed, and what each connection came to")
	f.IntVar(&config.PerSecond, "per-second", 100,
		"messages that are printed in a second; others are only counted")
	return cmd
}
