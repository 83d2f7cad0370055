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

// printCheck prints that the configuration is valid, or returns all errors. It also prints which
// directories of sockets are missing on this machine.
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
		fmt.Fprintf(table, "--%s\t%s\t%s\n", s.Name, sanitize.Text(valueText(s)), sanitize.Text(originText(s)))
	}
	return table.Flush()
}

// valueText returns the value of a setting, followed by the effective value on this machine if it
// differs. It returns "-" if both are empty.
func valueText(s status.Setting) string {
	isEmpty := s.Value == "" || s.Value == "[]"
	switch {
	case isEmpty:
		return cmp.Or(s.Effective, "-")
	case s.Effective != "":
		return s.Value + " (" + s.Effective + ")"
	}
	return s.Value
}

// originText returns the source of a setting, with the name of the environment variable, or with the
// default that was adapted to this machine.
func originText(s status.Setting) string {
	isAdapted := s.Origin == status.FromMemory || s.Origin == status.FromDescriptors
	switch {
	case s.Variable != "":
		return "environment, " + s.Variable
	case isAdapted:
		return s.Origin + ", instead of " + s.Default
	}
	return s.Origin
}

// writeJSON writes v as indented JSON.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
