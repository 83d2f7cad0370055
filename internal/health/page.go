package health

import (
	"embed"
	"net/http"
)

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
