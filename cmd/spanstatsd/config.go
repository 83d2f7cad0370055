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

// newConfigCommand has the flags of run, so that a command line is looked at by
// putting config where run stood.
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
				if err := o.check(cmd); err != nil {
					return err
				}
				says := "the configuration can be used"
				if lacks := daemon.CheckHere(&o.config); lacks != nil {
					says += ", but not on this machine as it is:\n" + sanitize.Lines(lacks.Error())
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), says)
				return err
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

func writeSettings(w io.Writer, settings []status.Setting) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FLAG\tVALUE\tFROM")
	for _, s := range settings {
		fmt.Fprintf(table, "--%s\t%s\t%s\n", s.Name, shownValue(s), shownOrigin(s))
	}
	return table.Flush()
}

// shownValue is the value, and what it comes to where that is another.
func shownValue(s status.Setting) string {
	value, effective := sanitize.Text(s.Value), sanitize.Text(s.Effective)
	switch {
	case value == "" || value == "[]":
		return cmp.Or(effective, "-")
	case effective != "":
		return fmt.Sprintf("%s (%s)", value, effective)
	}
	return value
}

func shownOrigin(s status.Setting) string {
	switch {
	case s.Variable != "":
		return "environment, " + sanitize.Text(s.Variable)
	case s.Origin == status.FromMemory || s.Origin == status.FromDescriptors:
		return s.Origin + ", instead of " + s.Default
	}
	return s.Origin
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
