package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/status/doctor"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
	"github.com/spf13/cobra"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	daemon     daemonFlags
	prometheus string
	asJSON     bool
	timeout    time.Duration
}

func newDoctorCommand() *cobra.Command {
	o := doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say of a running daemon what is right and what is not, each with its mend",
		Long: `Ask a running daemon for its status and say line by line what is right, what may
surprise, and what is wrong, each with its mend. The daemon is the one at --url,
or at the address in SPANSTATSD_HTTP_ADDR, or at http://127.0.0.1:9126.

Exits with 1 if something is wrong, and with 3 if no daemon answers there.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := o.daemon.asked(o.timeout)
			if err != nil {
				return err
			}
			return o.look(cmd, source)
		},
	}
	f := cmd.Flags()
	o.daemon.add(f)
	f.StringVar(&o.prometheus, "prometheus", "", "a Prometheus to ask what arrived there, http://host:port")
	f.BoolVar(&o.asJSON, "json", false, "findings as JSON, see docs/doctor.md")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "for an answer")
	return cmd
}

func (o *doctorOptions) look(cmd *cobra.Command, source *statusSource) error {
	_, status, err := source.get(cmd.Context())
	if err != nil {
		return err
	}
	findings := doctor.Look(status, version)
	if o.prometheus != "" {
		arrival, err := askPrometheus(cmd.Context(), o.prometheus, o.timeout)
		if err != nil {
			return err
		}
		findings.Arrived(status, arrival)
	}
	if err := writeFindings(cmd.OutOrStdout(), findings, o.asJSON); err != nil {
		return err
	}
	if n := findings.Wrong(); n > 0 {
		return fmt.Errorf("look at daemon: %d of %d findings are wrong; each says its mend", n, len(findings))
	}
	return nil
}

// writeFindings writes a line each, and below it the mend of what is not right.
func writeFindings(out io.Writer, findings doctor.Findings, asJSON bool) error {
	if asJSON {
		to := json.NewEncoder(out)
		to.SetIndent("", "  ")
		if err := to.Encode(findings); err != nil {
			return fmt.Errorf("write findings: %w", err)
		}
		return nil
	}
	for _, one := range findings {
		fmt.Fprintf(out, "%-7s %s: %s\n", one.Verdict, one.Subject, sanitize.Text(one.Message))
		if one.Fix != "" {
			fmt.Fprintf(out, "%-7s mend: %s\n", "", sanitize.Text(one.Fix))
		}
	}
	return nil
}

// maxArrivalBytes bounds what is read of a Prometheus' answer, which is one number.
const maxArrivalBytes = 64 << 10

// askPrometheus asks one for the calls that it has.
func askPrometheus(ctx context.Context, at string, timeout time.Duration) (a doctor.Arrival, err error) {
	base, err := url.Parse(at)
	if err != nil || base.Host == "" {
		return a, commandline.Mistake("parse --prometheus: it is not http://host:port")
	}
	asked := base.JoinPath("api/v1/query")
	asked.RawQuery = url.Values{"query": {doctor.CallsQuery}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), nil)
	if err != nil {
		return a, fmt.Errorf("ask Prometheus: %w", err)
	}
	response, err := (&http.Client{Timeout: timeout}).Do(request)
	if err != nil {
		return a, fmt.Errorf("ask Prometheus: %w; does --prometheus name its address?", err)
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxArrivalBytes)).Decode(&answer)
	if err != nil || answer.Status != "success" {
		return a, fmt.Errorf("ask Prometheus: %s answered %s %s; is this a Prometheus?", base.Redacted(),
			response.Status, answer.Error)
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		a.At = date
	}
	for _, one := range answer.Data.Result {
		text, _ := one.Value[1].(string)
		a.Calls, err = strconv.ParseFloat(text, 64)
		a.Has = err == nil
	}
	return a, nil
}
