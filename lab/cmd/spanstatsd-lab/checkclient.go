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
		Short: "Show how the daemon interprets the messages of a client",
		Long: `Listen on a socket like the daemon, and print each message of a client: its content, the
labels that would be normalized, its cost, and mistakes. A mistake in the encoding is
printed with its reason, its position, and the bytes around it. Nothing is counted, and
no agent is needed. docs/write-a-client.md has an example.

The command ends after --connections, or when it is interrupted. It exits with 1 if a
connection sent something malformed or something that the daemon would drop, or if no
client connected.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if connections < 0 || config.PerSecond < 0 {
				return commandline.Mistake("parse --connections and --per-second: %d and %d must not be "+
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
		"Unix socket for the client, by default the one in "+client.SocketEnv)
	f.IntVar(&connections, "connections", 0, "number of connections after which to exit; 0 to exit when interrupted")
	f.BoolVar(&config.Dies, "die", false,
		"behave like a daemon that is killed and restarted, to check which spans the client resends")
	f.BoolVar(&config.JSON, "json", false, "print one JSON object per line")
	f.BoolVar(&config.Quiet, "quiet", false, "print only mistakes, and a summary of each connection")
	f.IntVar(&config.PerSecond, "per-second", 100,
		"maximum number of messages printed per second; others are only counted")
	return cmd
}
