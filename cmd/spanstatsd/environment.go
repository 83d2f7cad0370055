package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// ourPrefix and a flag's name make the environment variable of every flag:
// --ring-slots is SPANSTATSD_RING_SLOTS.
const ourPrefix = "SPANSTATSD_"

func environmentName(flag string) string {
	return ourPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applyEnvironment sets each flag that the command line did not from its
// variable: flag, then environment, then default. A variable of ours that no
// flag has is left alone, since another subcommand may have it.
func applyEnvironment(flags *pflag.FlagSet) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		name := environmentName(f.Name)
		value, set := os.LookupEnv(name)
		if f.Changed || !set || value == "" || failed != nil {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			failed = usageError{fmt.Errorf("read environment variable %s: %w", name, err)}
			return
		}
		annotate(f, fromVariable, name)
	})
	return failed
}

// agentFromEnvironment is the agent's address as the Datadog tracers are told
// it, for whoever gave no --agent-url, and the variables that said so.
func agentFromEnvironment() (url, variables string) {
	if url := os.Getenv("DD_TRACE_AGENT_URL"); url != "" {
		return url, "DD_TRACE_AGENT_URL"
	}
	host, port := os.Getenv("DD_AGENT_HOST"), os.Getenv("DD_TRACE_AGENT_PORT")
	var said []string
	if host != "" {
		said = append(said, "DD_AGENT_HOST")
	}
	if port != "" {
		said = append(said, "DD_TRACE_AGENT_PORT")
	}
	host = strings.Trim(cmp.Or(host, "127.0.0.1"), "[]") // an IPv6 address may have brackets already
	return "http://" + net.JoinHostPort(host, cmp.Or(port, "8126")), strings.Join(said, ", ")
}
