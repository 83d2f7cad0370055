package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
)

// Flags for addresses of other processes.
const (
	agentFlag   = "agent-url"
	metricsFlag = "otlp-metrics-endpoint"
)

// address is an address in the configuration.
type address struct {
	flag, network, name string
	isOthers            bool // another process listens there
}

// addresses returns the configured addresses: first those on which the daemon listens, then those
// of other processes.
func (c *Config) addresses() []address {
	all := []address{
		{flag: "socket", network: "unix", name: c.Ingest.Socket.Path},
		{flag: "http-addr", network: "tcp", name: c.HTTPAddr},
		{flag: "prometheus-addr", network: "tcp", name: c.PrometheusAddr},
	}
	var others []address
	if !c.Agent.AutoDiscovered { // the address of an auto-discovered agent may be in use for something else
		others = append(others, address{agentFlag, c.Agent.URL.Network, c.Agent.URL.Address, true})
	}
	for _, x := range c.Exporters {
		others = append(others, addressOf(x.URL))
	}
	for _, k := range receiverKinds {
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

// checkAddresses returns an error for each pair of equal addresses: a second listener would fail,
// and a daemon that is its own agent would send to itself forever.
func (c *Config) checkAddresses() (err error) {
	all := c.addresses()
	for i, a := range all {
		for _, b := range all[:i] {
			if a.equals(b) {
				err = errors.Join(err, fmt.Errorf("check %s: %s is also the address of --%s; give each its own%s",
					a.flag, a.name, b.flag, a.hint()))
			}
		}
	}
	return err
}

// addressOf returns the address in an exporter's URL.
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

// hint returns an explanation for an address that may come from an environment variable.
func (a address) hint() string {
	if a.flag == metricsFlag {
		return ". The daemon sends its metrics to OTEL_EXPORTER_OTLP_ENDPOINT; the variable is not the address " +
			"for SDKs"
	}
	return ""
}

// equals reports whether two addresses are certainly the same. Two addresses of other processes may
// be the same and do not count.
func (a address) equals(other address) bool {
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
	isSameHost := resolveLocalhost(host) == resolveLocalhost(otherHost)
	return isSameHost || isUnspecified(host) && other.isLocal(otherHost) || isUnspecified(otherHost) && a.isLocal(host)
}

// resolveLocalhost returns the IP address of localhost, and other hosts unchanged.
func resolveLocalhost(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// isUnspecified reports whether a listener on host accepts connections to all addresses of the
// machine.
func isUnspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// isLocal reports whether a host is certainly this machine. A host on which the daemon listens is.
func (a address) isLocal(host string) bool {
	ip := net.ParseIP(resolveLocalhost(host))
	return !a.isOthers || isUnspecified(host) || ip != nil && ip.IsLoopback()
}
