package health

import (
	"embed"
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

// The page is a few files as they are: no build step, nothing from elsewhere,
// and only relative addresses, so that it works behind kubectl port-forward and
// any prefix of a proxy. It asks /status and draws the answer.
//
//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load its own files and ask its own daemon, and no more. Values from
// tracers are shown as text nodes only; trusted types make the browser refuse any code that
// would read them as markup.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " +
	"'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; " +
	"trusted-types 'none'"

// addPage answers the page at / and its files at /page/.
func addPage(handle func(pattern string, answer http.HandlerFunc)) {
	files := http.FileServerFS(pageFiles)
	serve := func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", pagePolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache") // a new version of the daemon has a new page
		files.ServeHTTP(w, r)
	}
	handle("GET /page/{file}", serve)
	handle("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/page/" // whose index it is
		serve(w, r)
	})
}
