package agent

import (
	"cmp"
	"net"
	"strings"
)

// DefaultURL is the agent's address if no flag and no variable has one.
const DefaultURL = "http://127.0.0.1:8126"

// FromEnvironment returns the agent's URL from DD_TRACE_AGENT_URL or, if that is not set, from DD_AGENT_HOST
// and DD_TRACE_AGENT_PORT. The second result contains the names of the variables that were used. Both results
// are empty if no variable is set.
func FromEnvironment(getenv func(string) string) (url, variables string) {
	const urlVariable, hostVariable, portVariable = "DD_TRACE_AGENT_URL", "DD_AGENT_HOST", "DD_TRACE_AGENT_PORT"
	if url := getenv(urlVariable); url != "" {
		return url, urlVariable
	}
	host, port := getenv(hostVariable), getenv(portVariable)
	var used []string
	if host != "" {
		used = append(used, hostVariable)
	}
	if port != "" {
		used = append(used, portVariable)
	}
	if len(used) == 0 {
		return "", ""
	}
	host = strings.Trim(cmp.Or(host, "127.0.0.1"), "[]") // an IPv6 address may have brackets already
	return "http://" + net.JoinHostPort(host, cmp.Or(port, "8126")), strings.Join(used, ", ")
}
