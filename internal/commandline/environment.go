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

// variablePrefix is the prefix of the environment variables of flags: the variable of --ring-slots
// is SPANSTATSD_RING_SLOTS.
const variablePrefix = "SPANSTATSD_"

// Variable returns the environment variable of a flag.
func Variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// visitSettings calls visit for the flags of a command, except those that only make it print
// something.
func visitSettings(cmd *cobra.Command, visit func(f *pflag.Flag)) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && f.Name != "version" && f.Name != AllFlag {
			visit(f)
		}
	})
}

// ApplyEnvironment sets each flag that the command line did not set from its variable. used
// contains the name of the variable for each flag that was set by one. mistakes joins all errors.
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

// unknownVariables returns an error for each variable with the prefix that is not the variable of
// any command's flag, because a misspelled variable would have no effect. Variables of other
// commands are accepted, because a container has one environment for all commands.
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

// serviceLink matches variables that Kubernetes sets in every container for a Service whose name
// begins with spanstatsd. It matches the name, or the value if the variable could also belong to a
// flag.
var serviceLink = regexp.MustCompile(`^[^=]+(_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
	`PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))=|=(tcp|udp|sctp)://)`)
