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
		Short: "Show the effective configuration of run, and the source of each value",
		Long: `Show each setting that run would use with the same flags and environment, and its
source: a flag, an environment variable, the default, memory (the memory limit
selected another default), or descriptors (the limit of open files lowered it).

With --check, validate the configuration without starting anything. All invalid
settings are printed, except that a flag which can't be parsed is reported alone.
Missing directories of sockets are reported as well.`,
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
	cmd.Flags().BoolVar(&check, "check", false, "print only whether the configuration is valid, and all errors")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printCheck returns the errors of the configuration, or prints that it is usable.
func (o *runOptions) printCheck(cmd *cobra.Command) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	verdict := "the configuration is valid"
	if missing := daemon.CheckDirectories(&o.config); missing != nil {
		verdict += ", but can't be used on this machine yet:\n" + sanitize.Lines(missing.Error())
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
