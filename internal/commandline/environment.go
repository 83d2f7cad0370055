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

// FromVariable is the annotation of a flag whose value a variable chose, which it names.
const FromVariable = "spanstatsd_from_variable"

// ourPrefix and a flag's name make the environment variable of every flag:
// --ring-slots is SPANSTATSD_RING_SLOTS.
const ourPrefix = "SPANSTATSD_"

// Variable is the environment variable of a flag.
func Variable(flag string) string {
	return ourPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// hasVariable says whether a flag is a setting. Those that only ask for a text are none.
func hasVariable(f *pflag.Flag) bool {
	return f.Name != "help" && f.Name != "version" && f.Name != AllFlag
}

// ApplyEnvironment sets each flag that the command line did not from its
// variable: flag, then environment, then default. It returns all that is wrong.
func ApplyEnvironment(cmd *cobra.Command) (mistakes error) {
	flags, any := cmd.Flags(), false
	flags.VisitAll(func(f *pflag.Flag) {
		any = any || hasVariable(f)
		name := Variable(f.Name)
		value := os.Getenv(name)
		if f.Changed || value == "" || !hasVariable(f) {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			mistakes = errors.Join(mistakes, UsageError{fmt.Errorf("read environment variable %s: %w", name,
				inWords(f, value, err))})
			backToDefault(f)
			return
		}
		Annotate(f, FromVariable, name)
	})
	if any { // what has no flag, such as version, misses no variable
		mistakes = errors.Join(mistakes, unknownVariables(cmd.Root(), os.Environ()))
	}
	return mistakes
}

// unknownVariables names those with our prefix that are no flag's of any command: one
// that is misspelt would change nothing, and nobody would see it. Those of another
// command are left alone, since a container has one environment for all.
func unknownVariables(root *cobra.Command, environment []string) (mistakes error) {
	var known []string
	var find func(cmd *cobra.Command)
	find = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if hasVariable(f) {
				known = append(known, strings.TrimPrefix(Variable(f.Name), ourPrefix))
			}
		})
		for _, below := range cmd.Commands() {
			find(below)
		}
	}
	find(root)
	slices.Sort(environment)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		ours, isOurs := strings.CutPrefix(name, ourPrefix)
		if isOurs && !slices.Contains(known, ours) && !isServiceLink(name, value) {
			mistakes = errors.Join(mistakes, UsageError{fmt.Errorf("read environment variable %s: no flag "+
				"has this name%s; see spanstatsd run --help --all",
				name, didYouMean(ourPrefix, nearest(ours, known)))})
		}
	}
	return mistakes
}

// serviceLink is how Kubernetes names, in every container, the addresses of a Service
// that is called spanstatsd, or spanstatsd and something more.
var serviceLink = regexp.MustCompile(
	`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))$`)

// serviceAddress is the value of a service link whose name could be a flag's.
var serviceAddress = regexp.MustCompile(`^(tcp|udp|sctp)://`)

func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) || serviceAddress.MatchString(value)
}
