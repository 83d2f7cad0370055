package health

import (
	"net"
	"net/http"

	"github.com/prometheus/exporter-toolkit/web"
)

// serve answers until Close, behind what the web config file asks for.
func (s *Server) serve() error {
	if s.config.WebConfigFile == "" {
		return s.http.Serve(s.listener)
	}
	probed := &probedListener{Listener: s.listener, server: s.http, open: s.http.Handler}
	return web.Serve(probed, s.http, &web.FlagConfig{WebConfigFile: &s.config.WebConfigFile}, s.config.Log)
}

// probedListener keeps the probes outside of the password. A kubelet has none,
// and can't be given one without writing it into the pod; what it learns is one
// word. TLS, and client certificates where the file asks for them, hold for the
// probes too.
//
// The toolkit puts its own handler before ours just before it begins to accept,
// in the same goroutine. So the first Accept is where ours can be put before
// both, and before any connection can see the handler.
type probedListener struct {
	net.Listener
	server *http.Server
	open   http.Handler // ours, without a password
	placed bool
}

func (l *probedListener) Accept() (net.Conn, error) {
	if !l.placed {
		l.placed = true
		guarded := l.server.Handler
		l.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/livez" || r.URL.Path == "/readyz" {
				l.open.ServeHTTP(w, r)
				return
			}
			guarded.ServeHTTP(w, r)
		})
	}
	return l.Listener.Accept()
}
