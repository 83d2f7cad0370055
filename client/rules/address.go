package rules

import (
	"net"
	"net/netip"
	"strings"
)

// blockedAddress replaces IP addresses in peer tags, because too many different ones occur.
const blockedAddress = "blocked-ip-address"

// QuantizePeer normalizes the value of a peer tag like the agent: it removes duplicates from a comma-separated list of
// hosts, and replaces IP addresses. It returns value itself if nothing has to be changed.
func QuantizePeer(value string) string {
	if strings.IndexByte(value, ',') < 0 {
		return quantizeHost(value)
	}
	hosts := strings.Split(value, ",")
	unique := hosts[:0]
	seen := make(map[string]struct{}, len(hosts))
	for _, host := range hosts {
		host = quantizeHost(host)
		if _, isDuplicate := seen[host]; !isDuplicate {
			seen[host] = struct{}{}
			unique = append(unique, host)
		}
	}
	return strings.Join(unique, ",")
}

// quantizeHost replaces the IP address in a host like ip-10-0-0-1.internal, http://10.0.0.1:80 or [::1]:443. It returns
// other hosts unchanged.
func quantizeHost(raw string) string {
	prefix, rest := splitScheme(raw)
	host, port := splitHostPort(rest)
	end := addressEnd(host)
	if end == 0 || isKnownAddress(host[:end]) {
		return raw
	}
	quantized := prefix + blockedAddress
	if port != "" {
		quantized += ":" + port // there are few ports, and they indicate the protocol
	}
	return quantized + host[end:]
}

// isKnownAddress reports whether host is an address with the same meaning everywhere: the loopback address
// or the metadata service of a cloud provider.
func isKnownAddress(host string) bool {
	switch host {
	case "127.0.0.1", "::1", "169.254.169.254", "fd00:ec2::254", "169.254.170.2":
		return true
	}
	return false
}

var schemes = [...]string{"dnspoll", "ftp", "file", "http", "https"}

// splitScheme splits off the prefix of an address: "ip-", or a URL scheme followed by two or three slashes.
// Like the agent, it finds the scheme anywhere in raw, and drops the text before it.
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

// splitHostPort splits off a port. If s has no port, or the brackets of an IPv6 address are unbalanced, it
// returns s as the host.
func splitHostPort(s string) (host, port string) {
	if strings.Contains(s, ":") { // most hosts have no port, and net.SplitHostPort would allocate an error
		if host, port, err := net.SplitHostPort(s); err == nil {
			return host, port
		}
	}
	return s, ""
}

// addressEnd returns the end of the IP address at the start of a host, or 0 if it starts with something else. An IPv6
// address must be the whole host.
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

// dottedEnd returns the end of four numbers below 256 with the given separator at the start of s, or 0 if
// s does not start with them. In host names, more text can follow.
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
