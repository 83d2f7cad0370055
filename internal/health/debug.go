package health

import (
	"net/http"
	"net/http/pprof"
	"time"
)

// profileTimeout leaves time for a profile of the usual 30 seconds, and a few more.
const profileTimeout = 2 * time.Minute

// addProfiles answers Go's own profiles. They cost CPU while they run and show
// memory, so they are there only where --debug asks for them.
func addProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}
