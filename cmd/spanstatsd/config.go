package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
	"github.com/spf13/cobra"
)

// newConfigCommand returns the command config. It has the flags of run, so that config can replace
// run in a command line.
func newConfigCommand(variables map[string]string) *cobra.Command {
	o := &runOptions{variables: variables}
	var check, asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show what run would run with, and where each value comes from",
		Long: `Show every value that run would run with, given the same flags in the same
environment, and where it comes from: a flag, an environment variable, the
default; or memory, where a limit on it chose another than the default; or
descriptors, for which a default was made smaller.
--check starts nothing and names everything that is unusable, and beside it which
directory of a socket is not there.
A flag that can't be parsed is named first, alone; then all variables; then the rest.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return o.printCheck(cmd)
			}
			if err := o.read(cmd); err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), o.config.Settings)
			}
			return writeSettings(cmd.OutOrStdout(), o.config.Settings)
		},
	}
	o.addTo(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "say what is unusable, and nothing else")
	cmd.Flags().BoolVar(&asJSON, "json", false, "show the values as JSON")
	return cmd
}

// printCheck returns the errors of the configuration, or prints that it is usable.
func (o *runOptions) printCheck(cmd *cobra.Command) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	verdict := "the configuration can be used"
	if missing := daemon.CheckHere(&o.config); missing != nil {
		verdict += ", but not on this machine as it is:\n" + sanitize.Lines(missing.Error())
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), verdict)
	return err
}

// writeSettings writes a table of the settings, their values and their sources.
func writeSettings(w io.Writer, settings []status.Setting) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FLAG\tVALUE\tFROM")
	for _, s := range settings {
		value, effective, origin := s.Value, s.Effective, s.Origin
		switch {
		case value == "" || value == "[]":
			value = cmp.Or(effective, "-")
		case effective != "":
			value += " (" + effective + ")"
		}
		switch {
		case s.Variable != "":
			origin = "environment, " + s.Variable
		case origin == status.FromMemory || origin == status.FromDescriptors:
			origin += ", instead of " + s.Default
		}
		fmt.Fprintf(table, "--%s\t%s\t%s\n", s.Name, sanitize.Text(value), sanitize.Text(origin))
	}
	return table.Flush()
}

// writeJSON writes v as indented JSON.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
