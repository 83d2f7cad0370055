package rules

import (
	"net"
	"net/netip"
	"strings"
)

// blockedAddress stands in the place of an IP address in a peer tag: there are
// too many of them to tell peers apart by.
const blockedAddress = "blocked-ip-address"

// QuantizePeer is the value of a peer tag as the agent keeps it: a list of hosts,
// separated by commas, without duplicates and with addresses blocked. It returns
// the value itself where there is nothing to change.
func QuantizePeer(value string) string {
	if strings.IndexByte(value, ',') < 0 {
		return quantizeHost(value)
	}
	hosts := strings.Split(value, ",")
	kept := hosts[:0]
	seen := make(map[string]struct{}, len(hosts))
	for _, host := range hosts {
		host = quantizeHost(host)
		if _, twice := seen[host]; !twice {
			seen[host] = struct{}{}
			kept = append(kept, host)
		}
	}
	return strings.Join(kept, ",")
}

// quantizeHost blocks the address in a host like ip-10-0-0-1.internal,
// http://10.0.0.1:80 or [::1]:443, and leaves what is none.
func quantizeHost(raw string) string {
	prefix, rest := splitScheme(raw)
	host, port := splitHostPort(rest)
	end := addressEnd(host)
	if end == 0 || isKnownAddress(host[:end]) {
		return raw
	}
	blocked := prefix + blockedAddress
	if port != "" {
		// There are few ports, and they tell what is spoken.
		blocked += ":" + port
	}
	return blocked + host[end:]
}

// isKnownAddress tells the few addresses that mean the same everywhere: the
// machine itself, and what the clouds answer for metadata at.
func isKnownAddress(host string) bool {
	switch host {
	case "127.0.0.1", "::1", "169.254.169.254", "fd00:ec2::254", "169.254.170.2":
		return true
	}
	return false
}

var schemes = [...]string{"dnspoll", "ftp", "file", "http", "https"}

// splitScheme cuts what may stand before an address: "ip-", or a scheme with two
// or three slashes, wherever in the value the agent finds it.
func splitScheme(raw string) (prefix, rest string) {
	if rest, ok := strings.CutPrefix(raw, "ip-"); ok {
		return "ip-", rest
	}
	if !strings.Contains(raw, "://") {
		return "", raw
	}
	for _, scheme := range schemes {
		start := strings.Index(raw, scheme)
		if start < 0 {
			continue
		}
		for _, slashes := range [...]string{":///", "://"} {
			end := start + len(scheme) + len(slashes)
			if end < len(raw) && raw[start+len(scheme):end] == slashes {
				return raw[start:end], raw[end:]
			}
		}
	}
	return "", raw
}

// splitHostPort cuts a port off. Where there is none, or the brackets of an IPv6
// address are not in order, the host is the whole.
func splitHostPort(s string) (host, port string) {
	if strings.Contains(s, ":") { // most have none, and need no error that says so
		if host, port, err := net.SplitHostPort(s); err == nil {
			return host, port
		}
	}
	return s, ""
}

// addressEnd is where an IP address at the start of the host ends, 0 where there
// is none. IPv6 has to be the whole of it.
func addressEnd(s string) int {
	if s == "" || !strings.Contains("0123456789abcdefABCDEF:", s[:1]) {
		return 0
	}
	for i := range len(s) {
		switch s[i] {
		case '.', '_', '-':
			return dottedEnd(s, s[i])
		case ':':
			if _, err := netip.ParseAddr(s); err != nil {
				return 0
			}
			return len(s)
		case '%':
			return 0
		}
	}
	return 0
}

// dottedEnd is where four numbers below 256, with that separator, end. Names of
// machines have more behind them.
func dottedEnd(s string, separator byte) int {
	value, digits, dots := 0, 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			if digits == 1 && value == 0 {
				return 0 // a leading zero
			}
			value = value*10 + int(c-'0')
			digits++
			if value > 255 {
				return 0
			}
		case c == separator:
			if i == 0 || i == len(s)-1 || s[i-1] == separator {
				return 0
			}
			if dots == 3 {
				return i
			}
			dots++
			value, digits = 0, 0
		case dots == 3 && digits > 0:
			return i
		default:
			return 0
		}
	}
	if dots < 3 {
		return 0
	}
	return len(s)
}
