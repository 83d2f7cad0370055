package health

import (
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
)

// hosts are the names that the page and the status answer to, in lower case, beside addresses as
// they are and those of loopback.
//
// A page from elsewhere whose name leads here (DNS rebinding) has a browser ask us by that name,
// and may read the answer. It can neither choose an address as its name nor one that only this
// machine knows: the machine's own, and those of its file of hosts, in which a pod's stand.
type hosts []string

// newHosts are the machine's names, and more.
func newHosts(more []string) (known hosts) {
	if own, err := os.Hostname(); err == nil {
		known = append(known, own)
	}
	listed, _ := os.ReadFile("/etc/hosts") // none: not every system has one
	for line := range strings.Lines(string(listed)) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 {
			known = append(known, words[1:]...)
		}
	}
	known = append(known, more...)
	for i := range known {
		known[i] = strings.ToLower(known[i])
	}
	return known
}

// has says whether a request's Host is one of them. A request of HTTP/1.0 may have none; a browser's has.
func (h hosts) has(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	address, _, _ := strings.Cut(host, "%") // a zone
	return host == "" || host == "localhost" || net.ParseIP(address) != nil || slices.Contains(h, host)
}

// guard refuses what is asked for by another name.
func (h hosts) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.has(r.Host) {
			http.Error(w, "this daemon does not answer to that name: use its address, or give the name to "+
				"its --http-hosts", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
