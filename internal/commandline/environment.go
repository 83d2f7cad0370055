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

// isSetting reports whether an environment variable can set a flag. It returns false for flags that only make a command
// print something.
func isSetting(f *pflag.Flag) bool {
	return f.Name != "help" && f.Name != "version" && f.Name != AllFlag
}

// hasSetting reports whether a command has a flag that an environment variable can set. flag is the present or an old name
// of the flag.
func hasSetting(cmd *cobra.Command, flag string) bool {
	f := cmd.Flags().Lookup(flag)
	return f != nil && isSetting(f)
}

// flagOf returns the name of the flag that an environment variable sets.
func flagOf(variable string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, variablePrefix), "_", "-"))
}

// ApplyEnvironment sets flags of a command from environment variables, unless the command line has set them. used
// contains the variable of each flag that it set, by flag name. mistakes joins an error for each invalid value and for
// each misspelled variable: one that begins with SPANSTATSD_ and belongs to no flag.
func ApplyEnvironment(cmd *cobra.Command) (used map[string]string, mistakes error) {
	used = map[string]string{}
	settings := settingsOf(cmd)
	for _, f := range settings {
		err := applyVariable(cmd, f, Variable(f.Name), used)
		mistakes = errors.Join(mistakes, err)
	}
	mistakes = errors.Join(mistakes, applyOldVariables(cmd, used))
	readsVariables := len(settings) > 0 // a command without settings ignores all variables
	if readsVariables {
		mistakes = errors.Join(mistakes, checkVariables(cmd.Root()))
	}
	return used, AsUsage(mistakes)
}

// applyOldVariables sets flags of a command from environment variables that are named after a flag's old name. It
// adds the variables to used. mistakes joins an error for each invalid value.
func applyOldVariables(cmd *cobra.Command, used map[string]string) (mistakes error) {
	for _, variable := range programVariables() {
		f := cmd.Flags().Lookup(flagOf(variable)) // also finds a flag by its old name
		if f == nil {
			continue
		}
		hasCurrentName := variable == Variable(f.Name)
		if !hasCurrentName {
			err := applyVariable(cmd, f, variable, used)
			mistakes = errors.Join(mistakes, err)
		}
	}
	return mistakes
}

// settingsOf returns the flags of a command that environment variables can set.
func settingsOf(cmd *cobra.Command) (settings []*pflag.Flag) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if isSetting(f) {
			settings = append(settings, f)
		}
	})
	return settings
}

// applyVariable sets a flag to the value of an environment variable, and adds the variable to used. It does
// nothing if the flag is already set, or if the variable is empty.
func applyVariable(cmd *cobra.Command, f *pflag.Flag, variable string, used map[string]string) error {
	value := os.Getenv(variable)
	if f.Changed || value == "" {
		return nil
	}
	used[f.Name] = variable
	if err := cmd.Flags().Set(f.Name, value); err != nil {
		return fmt.Errorf("read environment variable %s: %w", variable, err)
	}
	return nil
}

// programVariables returns the names of all environment variables with the prefix SPANSTATSD_. It omits variables
// that Kubernetes sets for a Service named spanstatsd, such as SPANSTATSD_SERVICE_HOST.
func programVariables() (names []string) {
	for _, assignment := range os.Environ() {
		name, _, _ := strings.Cut(assignment, "=")
		isFromKubernetes := kubernetesAssignment.MatchString(assignment)
		if strings.HasPrefix(name, variablePrefix) && !isFromKubernetes {
			names = append(names, name)
		}
	}
	return names
}

// checkVariables returns an error for each environment variable with the prefix SPANSTATSD_ that belongs to no flag of
// root or of its subcommands. Such a variable is probably misspelled.
func checkVariables(root *cobra.Command) (mistakes error) {
	commands := append(root.Commands(), root)
	for _, variable := range programVariables() {
		flag := flagOf(variable)
		isKnown := slices.ContainsFunc(commands, func(cmd *cobra.Command) bool { return hasSetting(cmd, flag) })
		if !isKnown {
			mistakes = errors.Join(mistakes, fmt.Errorf("read environment variable %s: no flag has this "+
				"name; see spanstatsd run --help --all", variable))
		}
	}
	return mistakes
}

// kubernetesAssignment matches a variable with its value, in the form NAME=VALUE, that Kubernetes sets in every
// container for a Service. It recognizes the name, or the value if the variable could also belong to a flag.
var kubernetesAssignment = regexp.MustCompile(`^[^=]+(_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
	`PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))=|=(tcp|udp|sctp)://)`)
