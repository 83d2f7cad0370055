package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus/slorules"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// objectiveOptions holds the flags of service level objectives.
type objectiveOptions struct {
	objectives []string
	file       string
}

// addTo declares the flags.
func (o *objectiveOptions) addTo(f *pflag.FlagSet) {
	f.StringArrayVar(&o.objectives, "slo", nil,
		"service level objective whose good and total spans are counted, such as "+
			"checkout: service=shop, span=POST /checkout, 300ms, 99.9%; repeatable (default: none)")
	f.Var(commandline.Text(&o.file, commandline.Path), "slo-file",
		"file with additional service level objectives, in OpenSLO format (default: none)")
}

// read returns the objectives of both flags.
func (o *objectiveOptions) read() (*slo.List, error) {
	objectives, err := slo.Parse(o.objectives)
	if o.file != "" {
		fromFile, fileErr := slo.ReadFile(o.file)
		objectives, err = append(objectives, fromFile...), errors.Join(err, fileErr)
	}
	if err != nil {
		return nil, err
	}
	return slo.NewList(objectives) //nolint:wrapcheck // the error is complete
}

// complete sets the objectives of the daemon. hasDestination is true if a destination accepts their metrics.
func (o *objectiveOptions) complete(c *daemon.Config, hasDestination bool) error {
	objectives, err := o.read()
	if err != nil || objectives == nil {
		return err
	}
	if !hasDestination {
		return errors.New("check --slo: no destination accepts objectives; add --prometheus or --otlp-metrics-endpoint")
	}
	c.Admit.Objectives = objectives
	return nil
}

// checkAttributes returns an error if objectives refer to attributes that no span has as a label. With a Datadog agent,
// the labels are known only later.
func checkAttributes(c *daemon.Config, objectives *slo.List) (err error) {
	if c.APM.Enabled() {
		return nil
	}
	receivesAttributes := c.OTLP.Enabled() || c.Zipkin.Enabled() // native clients can send older names as tags
	for _, name := range objectives.AttributeNames() {
		isLabel := otel.IsTag(name) || slices.Contains(c.OTLP.Labels.Attributes, name)
		switch {
		case receivesAttributes && !otel.CanBeTag(name):
			err = errors.Join(err, fmt.Errorf("check --slo: objectives can't compare %s; use another label, such as service or env, "+
				"or the current name of the attribute, such as db.system.name for db.system", name))
		case !isLabel:
			err = errors.Join(err, fmt.Errorf("check --slo: no span has the label %s; add %[1]s to --prometheus-dimensions or "+
				"--otlp-dimensions, such as all,%[1]s", name))
		}
	}
	return err
}

// newSLOCommand returns the command for objectives.
func newSLOCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "slo",
		Short: "Work with service level objectives",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSLORulesCommand())
	return cmd
}

// newSLORulesCommand returns the command that prints rules for Prometheus.
func newSLORulesCommand() *cobra.Command {
	var o objectiveOptions
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Print rules for Prometheus about service level objectives",
		Long: `Print a rule file for Prometheus: for each objective, recording rules with the ratio
of bad spans over several periods, the objective and the remaining error budget; and
alerts that compare two periods each, as in the Site Reliability Workbook. The
flags for objectives are those of run. No daemon is needed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			objectives, err := o.read()
			if err == nil && objectives == nil {
				err = errors.New("read objectives: there are none; set --slo or --slo-file")
			}
			if err != nil {
				return commandline.AsUsage(err)
			}
			if err := slorules.Write(cmd.OutOrStdout(), objectives.All()); err != nil {
				return fmt.Errorf("write rules: %w", err)
			}
			return nil
		},
	}
	o.addTo(cmd.Flags())
	return cmd
}
