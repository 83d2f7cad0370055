package health

import (
	"embed"
	"net/http"
)

// The page is three files and an icon, as they are: no build step, nothing from
// elsewhere, and only relative addresses, so that it works behind kubectl
// port-forward and any prefix of a proxy. It asks /status and draws the answer.
//
//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load its own files and ask its own daemon, and no
// more. What tracers send is shown only as text nodes; trusted types make the
// browser refuse everything that would read it as markup.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// addPage answers the page and its files.
func addPage(mux *http.ServeMux) {
	for path, file := range map[string]struct{ name, kind string }{
		"/{$}":      {"index.html", "text/html; charset=utf-8"},
		"/page.css": {"page.css", "text/css; charset=utf-8"},
		"/page.js":  {"page.js", "text/javascript; charset=utf-8"},
		"/icon.svg": {"icon.svg", "image/svg+xml"},
	} {
		content, err := pageFiles.ReadFile("page/" + file.name)
		if err != nil {
			panic("BUG: the page misses a file: " + err.Error())
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			header := w.Header()
			header.Set("Content-Type", file.kind)
			header.Set("Content-Security-Policy", pagePolicy)
			header.Set("X-Content-Type-Options", "nosniff")
			header.Set("Referrer-Policy", "no-referrer")
			header.Set("Cache-Control", "no-cache") // a new version of the daemon has a new page
			_, _ = w.Write(content)                 // fails where who asked has left
		})
	}
}
