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

// ourPrefix and a flag's name make the environment variable of a flag: --ring-slots is
// SPANSTATSD_RING_SLOTS.
const ourPrefix = "SPANSTATSD_"

// Variable returns the environment variable of a flag.
func Variable(flag string) string {
	return ourPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// hasVariable reports whether a flag is a setting, rather than a question for a text.
func hasVariable(f *pflag.Flag) bool {
	return f.Name != "help" && f.Name != "version" && f.Name != AllFlag
}

// ApplyEnvironment sets each flag that the command line did not set from its variable. It returns the
// variables that it has used by the names of their flags, and all errors.
func ApplyEnvironment(cmd *cobra.Command) (used map[string]string, mistakes error) {
	used = map[string]string{}
	flags, hasSettings := cmd.Flags(), false
	flags.VisitAll(func(f *pflag.Flag) {
		hasSettings = hasSettings || hasVariable(f)
		name := Variable(f.Name)
		value := os.Getenv(name)
		if f.Changed || value == "" || !hasVariable(f) {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			mistakes = errors.Join(mistakes, fmt.Errorf("read environment variable %s: %w", name, err))
		}
		used[f.Name] = name
	})
	if hasSettings {
		mistakes = errors.Join(mistakes, unknownVariables(cmd.Root(), os.Environ()))
	}
	return used, AsUsage(mistakes)
}

// unknownVariables returns an error for each variable with our prefix that no command has a flag for: a
// misspelt variable would change nothing. Variables of other commands are accepted, because a container
// has one environment for all.
func unknownVariables(root *cobra.Command, environment []string) (mistakes error) {
	known := map[string]bool{}
	var find func(cmd *cobra.Command)
	find = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known[Variable(f.Name)] = hasVariable(f) })
		for _, below := range cmd.Commands() {
			find(below)
		}
	}
	find(root)
	slices.Sort(environment)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, ourPrefix) && !known[name] && !isServiceLink(name, value) {
			mistakes = errors.Join(mistakes, fmt.Errorf("read environment variable %s: no flag has this "+
				"name; see spanstatsd run --help --all", name))
		}
	}
	return mistakes
}

// serviceLink matches the variables that Kubernetes sets in every container for a Service whose name
// begins with spanstatsd.
var serviceLink = regexp.MustCompile(
	`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))$`)

// serviceAddress matches the value of a service link whose name could be a flag's.
var serviceAddress = regexp.MustCompile(`^(tcp|udp|sctp)://`)

func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) || serviceAddress.MatchString(value)
}
