package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/status/doctor"
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
				return commandline.Mistake("parse --prometheus: not a URL; use http://host:port")
			}
			findings, err := diagnose(cmd.Context(), source, prometheusURL, timeout)
			var unavailable *statusError
			switch {
			case asJSON && errors.As(err, &unavailable):
				findings.Add(doctor.Wrong, "status", unavailable.fix, unavailable.cause.Error())
				return errors.Join(writeJSON(cmd.OutOrStdout(), findings), err)
			case err != nil:
				return err
			case asJSON:
				err = writeJSON(cmd.OutOrStdout(), findings)
			default:
				writeFindings(cmd.OutOrStdout(), findings)
			}
			if n := findings.Wrong(); err == nil && n > 0 {
				err = fmt.Errorf("check daemon: %d of %d checks found something wrong; apply the fix of each", n, len(findings))
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

// diagnose returns the findings about a daemon. If the URL of a Prometheus is given, it also checks
// that the daemon's statistics have arrived there.
func diagnose(ctx context.Context, source *statusSource, prometheus *url.URL, timeout time.Duration) (
	findings doctor.Findings, err error,
) {
	_, status, err := source.get(ctx)
	if err != nil {
		return nil, err
	}
	findings = doctor.Diagnose(status, version)
	if prometheus.Host == "" {
		return findings, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	arrival, err := doctor.AskPrometheus(ctx, prometheus)
	if err != nil {
		findings.Add(doctor.Wrong, doctor.PrometheusSubject, "check that --prometheus is the address of a Prometheus",
			err.Error())
		return findings, nil
	}
	findings.CheckArrival(status, arrival)
	return findings, nil
}

// writeFindings writes one line per finding, and a second line for the fix of a problem.
func writeFindings(out io.Writer, findings doctor.Findings) {
	for _, finding := range findings {
		fmt.Fprintf(out, "%-7s %s: %s\n", finding.Verdict, finding.Subject, finding.Message)
		if finding.Fix != "" {
			fmt.Fprintf(out, "%-7s fix: %s\n", "", finding.Fix)
		}
	}
}
