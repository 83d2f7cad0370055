package rules

import (
	"net"
	"net/netip"
	"strings"
)

// blockedAddress replaces IP addresses in peer tags, because too many different ones occur.
const blockedAddress = "blocked-ip-address"

// QuantizePeer replaces IP addresses in the value of a peer tag with a fixed text, as the Datadog agent does. The
// value is a host, for example 10.0.0.1:80, or a comma-separated list of hosts. From a list, QuantizePeer also
// removes duplicates.
func QuantizePeer(value string) string {
	if !strings.Contains(value, ",") {
		return quantizeHost(value)
	}
	var unique []string
	seen := make(map[string]bool)
	for host := range strings.SplitSeq(value, ",") {
		quantized := quantizeHost(host)
		if !seen[quantized] {
			seen[quantized] = true
			unique = append(unique, quantized)
		}
	}
	return strings.Join(unique, ",")
}

// quantizeHost replaces the IP address in an address with "blocked-ip-address". For example, http://10.0.0.1:80
// becomes http://blocked-ip-address:80. It returns the address unchanged if the host does not begin with an IP
// address, or begins with a well-known one such as 127.0.0.1.
func quantizeHost(address string) string {
	prefix, hostAndPort := splitPrefix(address)
	host, port := splitHostPort(hostAndPort)
	ipLength := leadingIPLength(host)
	if ipLength == 0 || isWellKnownIP(host[:ipLength]) {
		return address
	}
	quantized := prefix + blockedAddress
	if port != "" {
		quantized += ":" + port // there are few ports, and they indicate the protocol
	}
	restOfHost := host[ipLength:] // such as ".internal"; the Datadog agent puts it after the port, too
	return quantized + restOfHost
}

// isWellKnownIP reports whether ip is an address with the same meaning everywhere: the loopback address or the metadata
// service of a cloud provider.
func isWellKnownIP(ip string) bool {
	switch ip {
	case "127.0.0.1", "::1", "169.254.169.254", "fd00:ec2::254", "169.254.170.2":
		return true
	}
	return false
}

var schemes = [...]string{"dnspoll", "ftp", "file", "http", "https"}

// splitPrefix splits an address after its prefix, which is "ip-", or a known URL scheme with "://" or ":///". Like
// the Datadog agent, it finds a scheme at any position and drops the text before it. If there is no prefix, rest is
// the whole address.
func splitPrefix(address string) (prefix, rest string) {
	if afterPrefix, ok := strings.CutPrefix(address, "ip-"); ok {
		return "ip-", afterPrefix
	}
	if !strings.Contains(address, "://") {
		return "", address
	}
	for _, scheme := range schemes {
		if prefix, rest, isFound := cutScheme(address, scheme); isFound {
			return prefix, rest
		}
	}
	return "", address
}

// cutScheme splits an address after the first occurrence of a scheme with its slashes, such as "http://" or "file:///".
// prefix is the scheme with the slashes; text before the scheme is dropped. isFound is false if the scheme and slashes
// do not occur, or if nothing follows them.
func cutScheme(address, scheme string) (prefix, rest string, isFound bool) {
	_, afterScheme, hasScheme := strings.Cut(address, scheme)
	if !hasScheme {
		return "", "", false
	}
	for _, slashes := range [...]string{":///", "://"} { // the longest first
		afterSlashes, hasSlashes := strings.CutPrefix(afterScheme, slashes)
		if hasSlashes && afterSlashes != "" {
			return scheme + slashes, afterSlashes, true
		}
	}
	return "", "", false
}

// splitHostPort splits an address like 10.0.0.1:80 or [::1]:443 into host and port. If the address has no port or is
// malformed, it returns the whole address as the host.
func splitHostPort(address string) (host, port string) {
	if !strings.Contains(address, ":") { // the common case, for which net.SplitHostPort would allocate an error
		return address, ""
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address, ""
	}
	return host, port
}

// leadingIPLength returns the length of the IP address at the start of a host, or 0 if there is none. An IPv4 address
// can be written with underscores or hyphens instead of dots, as in 10-0-0-1.internal. An IPv6 address must be the
// whole host.
func leadingIPLength(host string) int {
	const firstBytes = "0123456789abcdefABCDEF:"
	if host == "" || !strings.Contains(firstBytes, host[:1]) {
		return 0
	}
	delimiterIndex := strings.IndexAny(host, "._-:")
	if delimiterIndex < 0 {
		return 0
	}
	switch delimiter := host[delimiterIndex]; delimiter {
	case '.', '_', '-':
		return leadingIPv4Length(host, delimiter)
	case ':':
		if _, err := netip.ParseAddr(host); err == nil {
			return len(host)
		}
	}
	return 0
}

// leadingIPv4Length returns the length of the IPv4 address at the start of a host, or 0 if there is none. The separator
// is the byte between the four numbers of the address. A number must be below 256 and have no leading zeros.
func leadingIPv4Length(host string, separator byte) int {
	value, digits, separators := 0, 0, 0
	for i := range len(host) {
		switch c := host[i]; {
		case c >= '0' && c <= '9':
			if hasLeadingZero := digits == 1 && value == 0; hasLeadingZero {
				return 0
			}
			value = value*10 + int(c-'0')
			digits++
			if value > 255 {
				return 0
			}
		case c == separator:
			if digits == 0 || i == len(host)-1 {
				return 0
			}
			if separators == 3 {
				return i
			}
			separators++
			value, digits = 0, 0
		case separators == 3 && digits > 0:
			return i
		default:
			return 0
		}
	}
	if separators < 3 {
		return 0
	}
	return len(host)
}
