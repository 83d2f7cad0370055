package commandline

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// variablePrefix is the prefix of the environment variables of flags: the variable of --ring-slots
// is SPANSTATSD_RING_SLOTS.
const variablePrefix = "SPANSTATSD_"

// Variable returns the environment variable of a flag.
func Variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// isSetting reports whether a flag has a variable. Flags that only make a command print something
// have none.
func isSetting(f *pflag.Flag) bool {
	return f.Name != "help" && f.Name != "version" && f.Name != AllFlag
}

// hasSetting reports whether a command has a flag with a variable, given the flag's present or old
// name.
func hasSetting(cmd *cobra.Command, flag string) bool {
	f := cmd.Flags().Lookup(flag)
	return f != nil && isSetting(f)
}

// flagOf returns the name of the flag that an environment variable sets.
func flagOf(variable string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, variablePrefix), "_", "-"))
}

// ApplyEnvironment sets each flag that the command line did not set from its variable, or from the
// variable of its old name, see AcceptOldNames. used contains the name of the variable for each
// flag that was set by one. mistakes joins all errors.
func ApplyEnvironment(cmd *cobra.Command) (used map[string]string, mistakes error) {
	used = map[string]string{}
	hasSettings := false
	apply := func(f *pflag.Flag, variable string) {
		value := os.Getenv(variable)
		if f.Changed || value == "" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			mistakes = errors.Join(mistakes, fmt.Errorf("read environment variable %s: %w", variable, err))
		}
		used[f.Name] = variable
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if isSetting(f) {
			hasSettings = true
			apply(f, Variable(f.Name))
		}
	})
	for _, variable := range ownVariables() {
		f := cmd.Flags().Lookup(flagOf(variable))
		if hasOldName := f != nil && Variable(f.Name) != variable; hasOldName {
			apply(f, variable)
		}
	}
	if hasSettings {
		mistakes = errors.Join(mistakes, unknownVariables(cmd.Root()))
	}
	return used, AsUsage(mistakes)
}

// ownVariables returns the names of the environment variables with the prefix, except those that
// Kubernetes sets.
func ownVariables() (names []string) {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, variablePrefix) && !serviceLink.MatchString(variable) {
			names = append(names, name)
		}
	}
	return names
}

// unknownVariables returns an error for each variable with the prefix that is not the variable of
// any command's flag, because a misspelled variable would have no effect. Variables of other
// commands are accepted, because a container has one environment for all commands.
func unknownVariables(root *cobra.Command) (mistakes error) {
	for _, variable := range ownVariables() {
		isKnown := func(cmd *cobra.Command) bool { return hasSetting(cmd, flagOf(variable)) }
		if !slices.ContainsFunc(append(root.Commands(), root), isKnown) {
			mistakes = errors.Join(mistakes, fmt.Errorf("read environment variable %s: no flag has this "+
				"name; see spanstatsd run --help --all", variable))
		}
	}
	return mistakes
}

// serviceLink matches variables that Kubernetes sets in every container for a Service whose name
// begins with spanstatsd. It matches the name, or the value if the variable could also belong to a
// flag.
var serviceLink = regexp.MustCompile(`^[^=]+(_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
	`PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))=|=(tcp|udp|sctp)://)`)
