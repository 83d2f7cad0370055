package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
)

// metricsFlag is the flag with the address of an OTLP exporter.
const metricsFlag = "otlp-metrics-endpoint"

// address is an address in the configuration.
type address struct {
	flag     string // flag that sets the address
	network  string // "unix" or "tcp"
	location string // path of a Unix socket, or host:port; "" if not configured
	isListen bool   // whether the daemon listens on it; otherwise the daemon sends to it
}

// listenAddresses returns the addresses on which the daemon listens.
func (c *Config) listenAddresses() []address {
	all := []address{
		{flag: "socket", network: "unix", location: c.Ingest.Socket.Path},
		{flag: "http-addr", network: "tcp", location: c.HTTPAddr},
		{flag: "prometheus-addr", network: "tcp", location: c.PrometheusAddr},
	}
	for _, kind := range receiverKinds {
		receiver := kind.commonConfig(c)
		all = append(all,
			address{flag: kind.name + "-socket", network: "unix", location: receiver.Socket.Path},
			address{flag: kind.name + "-addr", network: "tcp", location: receiver.Addr})
	}
	for i := range all {
		all[i].isListen = true
	}
	return all
}

// destinationAddresses returns the addresses to which the daemon sends statistics or forwards
// requests. It omits the address of an auto-discovered agent: the operator has not configured this address, so a
// conflict with another one is not a mistake.
func (c *Config) destinationAddresses() (all []address) {
	if !c.Agent.AutoDiscovered {
		agentURL := c.Agent.URL
		all = append(all, address{flag: "agent-url", network: agentURL.Network, location: agentURL.Address})
	}
	for _, exporter := range c.Exporters {
		network, location := parseAddress(exporter.URL)
		all = append(all, address{flag: metricsFlag, network: network, location: location})
	}
	for _, kind := range receiverKinds {
		if kind.forward != nil {
			upstream := kind.forward(c)
			all = append(all, address{
				flag: kind.name + "-forward", network: upstream.Network, location: upstream.Address,
			})
		}
	}
	return all
}

// parseAddress returns the network and the location of a URL: "unix" and the path of a socket, or "tcp" and
// host:port. It returns empty strings if the URL is invalid.
func parseAddress(rawURL string) (network, location string) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", ""
	}
	if u.Scheme == "unix" {
		return "unix", u.Path
	}
	defaultPorts := map[string]string{"http": "80", "https": "443"}
	port := cmp.Or(u.Port(), defaultPorts[u.Scheme])
	return "tcp", net.JoinHostPort(u.Hostname(), port)
}

// checkAddresses returns an error for each pair of flags with the same address. A second listener
// on an address would fail, and a daemon that sends to its own listener would never stop sending.
func (c *Config) checkAddresses() (err error) {
	all := append(c.listenAddresses(), c.destinationAddresses()...)
	for i, second := range all {
		for _, first := range all[:i] {
			if second.conflictsWith(first) {
				err = errors.Join(err, fmt.Errorf("check %s: %s is also the address of --%s; use two different addresses%s",
					second.flag, second.location, first.flag, second.variableHint()))
			}
		}
	}
	return err
}

// variableHint returns a sentence to append to an error about the address of the metrics flag. It explains a
// common mistake: OTEL_EXPORTER_OTLP_ENDPOINT was set for applications. For the address of another flag, it
// returns "".
func (a address) variableHint() string {
	isMetricsAddress := a.flag == metricsFlag
	if !isMetricsAddress {
		return ""
	}
	return ". The daemon sends its metrics to OTEL_EXPORTER_OTLP_ENDPOINT; the variable is not the address " +
		"for SDKs"
}

// conflictsWith reports whether two addresses are the same and at least one of them is a listen
// address. It returns false if this is not certain, for example because two host names can have the
// same IP address.
func (a address) conflictsWith(other address) bool {
	areConfigured := a.location != "" && other.location != ""
	hasListener := a.isListen || other.isListen
	canConflict := areConfigured && hasListener && a.network == other.network
	if !canConflict {
		return false
	}
	if a.network == "unix" {
		return filepath.Clean(a.location) == filepath.Clean(other.location)
	}
	return a.hasSameHostPort(other)
}

// hasSameHostPort reports whether it is certain that two TCP addresses have the same host and port. It
// returns false for port 0, because the kernel then selects a free port.
func (a address) hasSameHostPort(other address) bool {
	host, port, err := net.SplitHostPort(a.location)
	otherHost, otherPort, otherErr := net.SplitHostPort(other.location)
	if err != nil || otherErr != nil {
		return false
	}
	if port != otherPort || port == "0" {
		return false
	}
	if isUnspecified(host) { // for example 0.0.0.0, all addresses of this machine
		return other.isOnThisMachine()
	}
	if isUnspecified(otherHost) {
		return a.isOnThisMachine()
	}
	return resolveLocalhost(host) == resolveLocalhost(otherHost)
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

// isOnThisMachine reports whether it is certain that a TCP address is on this machine. The result is true
// for addresses on which the daemon listens, and for destinations with an unspecified or loopback host.
// It is false for other hosts, even if they resolve to this machine.
func (a address) isOnThisMachine() bool {
	host, _, err := net.SplitHostPort(a.location)
	if err != nil {
		return false
	}
	if a.isListen || isUnspecified(host) {
		return true
	}
	ip := net.ParseIP(resolveLocalhost(host))
	return ip != nil && ip.IsLoopback()
}
