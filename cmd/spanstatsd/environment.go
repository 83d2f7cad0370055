package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ourPrefix and a flag's name make the environment variable of every flag:
// --ring-slots is SPANSTATSD_RING_SLOTS.
const ourPrefix = "SPANSTATSD_"

func environmentName(flag string) string {
	return ourPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applyEnvironment sets each flag that the command line did not from its
// variable: flag, then environment, then default. It returns all that is wrong.
func applyEnvironment(cmd *cobra.Command) (mistakes error) {
	flags, any := cmd.Flags(), false
	flags.VisitAll(func(f *pflag.Flag) {
		any = any || f.Name != "help"
		name := environmentName(f.Name)
		value, set := os.LookupEnv(name)
		if f.Changed || !set || value == "" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			mistakes = errors.Join(mistakes, usageError{fmt.Errorf("read environment variable %s: %w", name, err)})
			backToDefault(f)
			return
		}
		annotate(f, fromVariable, name)
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
	known := map[string]bool{}
	var note func(cmd *cobra.Command)
	note = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known[environmentName(f.Name)] = true })
		for _, below := range cmd.Commands() {
			note(below)
		}
	}
	note(root)
	slices.Sort(environment)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, ourPrefix) && !known[name] && !isServiceLink(name, value) {
			mistakes = errors.Join(mistakes, usageError{fmt.Errorf("read environment variable %s: no flag has this name; see spanstatsd run --help", name)})
		}
	}
	return mistakes
}

// serviceLink is how Kubernetes names, in every container, the addresses of a Service
// that is called spanstatsd, or spanstatsd and something more.
var serviceLink = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))$`)

// serviceAddress is the value of a service link whose name could be a flag's.
var serviceAddress = regexp.MustCompile(`^(tcp|udp|sctp)://`)

func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) || serviceAddress.MatchString(value)
}

// agentFromEnvironment is the agent's address as the Datadog tracers are told
// it, for whoever gave no --agent-url, and the variables that said so.
func agentFromEnvironment() (url, variables string) {
	if url := os.Getenv("DD_TRACE_AGENT_URL"); url != "" {
		return url, "DD_TRACE_AGENT_URL"
	}
	var said []string
	for _, name := range []string{"DD_AGENT_HOST", "DD_TRACE_AGENT_PORT"} {
		if os.Getenv(name) != "" {
			said = append(said, name)
		}
	}
	host := strings.Trim(cmp.Or(os.Getenv("DD_AGENT_HOST"), "127.0.0.1"), "[]") // an IPv6 address may have brackets already
	return "http://" + net.JoinHostPort(host, cmp.Or(os.Getenv("DD_TRACE_AGENT_PORT"), "8126")), strings.Join(said, ", ")
}

// fromVariable is the annotation of a flag whose value an environment variable
// chose; its value is the variable's name.
const fromVariable = "spanstatsd_from_variable"

// forMemory is that of a flag whose default was chosen anew for a limit; its value is what
// sets the limit.
const (
	forMemory      = "spanstatsd_for_memory"
	forDescriptors = "spanstatsd_for_descriptors"
)

// annotate notes what a flag's value came from.
func annotate(f *pflag.Flag, kind, from string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[kind] = []string{from}
}

// setting is a flag's value and who chose it.
func setting(f *pflag.Flag) health.Setting {
	s := health.Setting{Name: f.Name, Value: f.Value.String(), Default: f.DefValue, Origin: health.FromDefault}
	switch variable := f.Annotations[fromVariable]; {
	case variable != nil:
		s.Origin, s.Variable = health.FromEnvironment, variable[0]
	case f.Annotations[forDescriptors] != nil:
		s.Origin = health.FromDescriptors
	case f.Annotations[forMemory] != nil:
		s.Origin = health.FromMemory
	case f.Changed:
		s.Origin = health.FromFlag
	}
	return s
}

// settings are the flags of run, by name, after they were completed: what the
// daemon runs with and where each value came from.
func (o *runOptions) settings(flags *pflag.FlagSet) (settings []health.Setting) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		s := setting(f)
		switch f.Name {
		case "agent-url":
			if s.Origin == health.FromDefault && o.agentVariables != "" {
				s.Origin, s.Variable = health.FromEnvironment, o.agentVariables
			}
		case "otlp-metrics-endpoint":
			if s.Origin == health.FromDefault && o.otlp.endpointVariable != "" {
				s.Origin, s.Variable = health.FromEnvironment, o.otlp.endpointVariable
			}
		case "otlp-temporality":
			if s.Origin == health.FromDefault && o.otlp.temporalityVariable != "" {
				s.Origin, s.Variable = health.FromEnvironment, o.otlp.temporalityVariable
			}
		case "cardinality-limit":
			limits, variables := strings.Join(o.limits, ","), strings.Join(o.limitVariables, ", ")
			switch {
			case limits == "":
			case s.Origin == health.FromDefault:
				s.Effective, s.Origin, s.Variable = limits, health.FromEnvironment, variables
			default:
				s.Effective = fmt.Sprintf("and %s by %s", limits, variables)
			}
		case "apm-additional-tags":
			if o.tagsVariable != "" {
				s.Origin, s.Variable = health.FromEnvironment, o.tagsVariable
			}
		case "drainers":
			s.Effective = strconv.Itoa(o.config.Aggregate.Drainers)
		case "drop-unsampled":
			s.Effective = droppingInWords(o.config.APM.DropUnsampled)
		}
		if s.Effective == s.Value {
			s.Effective = ""
		}
		settings = append(settings, s)
	})
	return settings
}
