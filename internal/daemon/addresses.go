package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
)

// Addresses where somebody else listens.
const (
	agentFlag   = "agent-url"
	metricsFlag = "otlp-metrics-endpoint"
)

// address is where somebody listens.
type address struct {
	flag, network, name string
	isOthers            bool // somebody else listens there
}

// addresses are those that a configuration names: where the daemon listens, and then where others do.
func (c *Config) addresses() []address {
	all := []address{
		{flag: "socket", network: "unix", name: c.Ingest.Socket.Path},
		{flag: "http-addr", network: "tcp", name: c.HTTPAddr},
		{flag: "prometheus-addr", network: "tcp", name: c.PrometheusAddr},
	}
	var others []address
	if !c.Agent.LookedFor { // or whoever listens there would have to know of the agent
		others = append(others, address{agentFlag, c.Agent.URL.Network, c.Agent.URL.Address, true})
	}
	for _, x := range c.Exporters {
		others = append(others, addressOf(x.URL))
	}
	for _, k := range doorKinds {
		in := k.common(c)
		all = append(all, address{flag: k.name + "-socket", network: "unix", name: in.Socket.Path},
			address{flag: k.name + "-addr", network: "tcp", name: in.Addr})
		if k.forward != nil {
			to := k.forward(c)
			others = append(others, address{k.name + "-forward", to.Network, to.Address, true})
		}
	}
	return append(all, others...)
}

// checkAddresses names every two that are one: a second listener would fail, and a daemon
// that is its own agent would send to itself for ever.
func (c *Config) checkAddresses() (err error) {
	all := c.addresses()
	for i, a := range all {
		for _, b := range all[:i] {
			if a.isAlso(b) {
				err = errors.Join(err, fmt.Errorf("check %s: %s is that of --%s too; give each its own%s",
					a.flag, a.name, b.flag, a.hint()))
			}
		}
	}
	return err
}

// addressOf is where an exporter's URL leads.
func addressOf(exporter string) address {
	u, err := url.Parse(exporter)
	switch {
	case err != nil:
		return address{flag: metricsFlag, isOthers: true}
	case u.Scheme == "unix":
		return address{metricsFlag, "unix", u.Path, true}
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return address{metricsFlag, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)), true}
}

// hint is how an operator may have come to an address without a flag.
func (a address) hint() string {
	if a.flag == metricsFlag {
		return ". OTEL_EXPORTER_OTLP_ENDPOINT of the daemon is where its metrics go, not where SDKs reach it"
	}
	return ""
}

// isAlso says whether two addresses are the same, as far as their names show.
func (a address) isAlso(other address) bool {
	if a.name == "" || other.name == "" || a.network != other.network || a.isOthers && other.isOthers {
		return false
	}
	if a.network == "unix" {
		return filepath.Clean(a.name) == filepath.Clean(other.name)
	}
	host, port, err := net.SplitHostPort(a.name)
	otherHost, otherPort, otherErr := net.SplitHostPort(other.name)
	if err != nil || otherErr != nil || port != otherPort || port == "0" { // 0 is any that is free
		return false
	}
	return named(host) == named(otherHost) || isEvery(host) && other.isHere(otherHost) ||
		isEvery(otherHost) && a.isHere(host)
}

// named is a host by the name that localhost goes by.
func named(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// isEvery says whether who listens there is met at each address of the machine.
func isEvery(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// isHere says whether a host is this machine for certain: where we listen it is.
func (a address) isHere(host string) bool {
	ip := net.ParseIP(named(host))
	return !a.isOthers || isEvery(host) || ip != nil && ip.IsLoopback()
}
