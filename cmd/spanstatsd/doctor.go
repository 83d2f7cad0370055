package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/status/doctor"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
	"github.com/spf13/cobra"
)

func newDoctorCommand() *cobra.Command {
	var daemon daemonFlags
	var prometheus string
	var asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose a running daemon, with a fix for each problem",
		Long: `Read the status of a running daemon and print one line per finding: ok, notice, or
wrong, with a fix. The daemon is the one at --url, at the address in
SPANSTATSD_HTTP_ADDR, or at http://127.0.0.1:9126.

The exit status is 1 if something is wrong, and 3 if no daemon responds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := daemon.source(timeout)
			if err != nil {
				return err
			}
			prometheusURL, err := url.Parse(prometheus)
			if err != nil || prometheus != "" && prometheusURL.Host == "" {
				return commandline.Mistake("parse --prometheus: it is not http://host:port")
			}
			_, status, err := source.get(cmd.Context())
			if err != nil {
				return err
			}
			findings := doctor.Look(status, version)
			if prometheus != "" {
				ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
				defer cancel()
				arrival, err := doctor.AskPrometheus(ctx, prometheusURL)
				if err != nil {
					return err
				}
				findings.Arrived(status, arrival)
			}
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), findings)
			} else {
				writeFindings(cmd.OutOrStdout(), findings)
			}
			if n := findings.Wrong(); err == nil && n > 0 {
				err = fmt.Errorf("look at daemon: %d of %d findings are wrong; each says its mend", n, len(findings))
			}
			return err
		},
	}
	f := cmd.Flags()
	daemon.addTo(f)
	f.StringVar(&prometheus, "prometheus", "", "URL of a Prometheus, http://host:port, to check that statistics have arrived there")
	f.BoolVar(&asJSON, "json", false, "print findings as JSON, see docs/troubleshooting.md")
	f.DurationVar(&timeout, "timeout", 5*time.Second, "maximum time to wait for a response")
	return cmd
}

// writeFindings writes one line per finding, and a second line if it has a fix.
func writeFindings(out io.Writer, findings doctor.Findings) {
	for _, finding := range findings {
		fmt.Fprintf(out, "%-7s %s: %s\n", finding.Verdict, finding.Subject, sanitize.Text(finding.Message))
		if finding.Fix != "" {
			fmt.Fprintf(out, "%-7s mend: %s\n", "", sanitize.Text(finding.Fix))
		}
	}
}
