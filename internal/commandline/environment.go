package commandline

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// variablePrefix and a flag's name are the flag's environment variable: --ring-slots is SPANSTATSD_RING_SLOTS.
const variablePrefix = "SPANSTATSD_"

// Variable returns the environment variable of a flag.
func Variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// visitSettings visits the flags of a command, except those that only make it print something.
func visitSettings(cmd *cobra.Command, visit func(f *pflag.Flag)) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && f.Name != "version" && f.Name != AllFlag {
			visit(f)
		}
	})
}

// ApplyEnvironment sets each flag that the command line did not set from its variable. It returns the
// variables that it has used by the names of their flags, and all errors.
func ApplyEnvironment(cmd *cobra.Command) (used map[string]string, mistakes error) {
	used = map[string]string{}
	hasSettings := false
	visitSettings(cmd, func(f *pflag.Flag) {
		hasSettings = true
		name := Variable(f.Name)
		value := os.Getenv(name)
		if f.Changed || value == "" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			mistakes = errors.Join(mistakes, fmt.Errorf("read environment variable %s: %w", name, err))
		}
		used[f.Name] = name
	})
	if hasSettings {
		mistakes = errors.Join(mistakes, unknownVariables(cmd.Root()))
	}
	return used, AsUsage(mistakes)
}

// unknownVariables returns an error for each variable with the prefix that no command has a flag for: a
// misspelt variable would change nothing. Variables of other commands are accepted, because a container
// has one environment for all.
func unknownVariables(root *cobra.Command) (mistakes error) {
	known := map[string]bool{}
	for _, cmd := range append(root.Commands(), root) {
		visitSettings(cmd, func(f *pflag.Flag) { known[Variable(f.Name)] = true })
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, variablePrefix) && !known[name] && !serviceLink.MatchString(variable) {
			mistakes = errors.Join(mistakes, fmt.Errorf("read environment variable %s: no flag has this "+
				"name; see spanstatsd run --help --all", name))
		}
	}
	return mistakes
}

// serviceLink matches the variables that Kubernetes sets in every container for a Service whose name begins
// with spanstatsd, by their names or, if a flag could have the name, by their values.
var serviceLink = regexp.MustCompile(`^[^=]+(_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
	`PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))=|=(tcp|udp|sctp)://)`)
