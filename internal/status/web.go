package status

import (
	"crypto/tls"
	"embed"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/exporter-toolkit/web"
)

// guardedListener exempts probes from authentication. A kubelet has no password, and could get one
// only in the pod spec; a probe reveals only one word. TLS, and client certificates if required,
// apply to probes, too.
//
// The toolkit wraps the server's handler just before it calls Accept, in the same goroutine. So the
// first Accept can wrap that handler again, before any connection uses it.
//
// The toolkit reads the file for each connection. With an invalid file, every TLS handshake would
// fail, and the kubelet would restart the daemon. In that case another server handles connections:
// it answers only probes, with the last valid certificate.
type guardedListener struct {
	net.Listener
	server      *http.Server
	log         *slog.Logger
	file        string
	open        http.Handler // handler without authentication
	placed      bool         // whether the server's handler was wrapped
	isBroken    bool         // whether the file was invalid at the last check
	probeServer *http.Server // handles connections while the file is invalid; nil without TLS
	probeConns  chan net.Conn
}

// Accept returns the next connection. The first call wraps the server's handler. While the file is
// invalid, connections are passed to the server for probes.
func (l *guardedListener) Accept() (net.Conn, error) {
	if !l.placed {
		l.placed = true
		l.server.Handler = probesFirst(l.open, l.server.Handler)
		l.startProbeServer()
	}
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.probeServer == nil || !l.checkFile() {
			return conn, err
		}
		l.probeConns <- conn
	}
}

// probesFirst routes probes to the first handler and all other requests to the second.
func probesFirst(open, guarded http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" || r.URL.Path == "/readyz" {
			open.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// startProbeServer starts the server for probes if TLS is configured. Without TLS, an invalid file
// ends no connection.
func (l *guardedListener) startProbeServer() {
	if config := l.server.TLSConfig; config == nil || config.GetCertificate == nil {
		return
	}
	config := l.server.TLSConfig.Clone()
	config.GetConfigForClient = nil
	config.GetCertificate = lastGood(config.GetCertificate)
	config.NextProtos = nil
	unusable := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the file of --web-config-file is invalid; see the daemon's log",
			http.StatusInternalServerError)
	})
	l.probeConns = make(chan net.Conn)
	l.probeServer = &http.Server{
		Handler: probesFirst(l.open, unusable), TLSConfig: config,
		ReadHeaderTimeout: l.server.ReadHeaderTimeout, ReadTimeout: l.server.ReadTimeout,
		WriteTimeout: l.server.WriteTimeout, MaxHeaderBytes: l.server.MaxHeaderBytes,
		ErrorLog: l.server.ErrorLog, ConnState: l.server.ConnState,
	}
	l.probeServer.SetKeepAlivesEnabled(false) // the file may be valid for the next connection
	go l.probeServer.ServeTLS(&chanListener{addr: l.Addr(), conns: l.probeConns, closed: make(chan struct{})},
		"", "")
}

// lastGood wraps a function that reads a certificate: if reading fails, it returns the last
// certificate.
func lastGood(
	read func(*tls.ClientHelloInfo) (*tls.Certificate, error),
) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	var mu sync.Mutex
	last, _ := read(nil)
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		certificate, err := read(hello)
		switch {
		case err == nil:
			last = certificate
		case last == nil:
			return nil, err
		}
		return last, nil
	}
}

// checkFile reports whether the file is invalid. It logs when the file becomes invalid, and when it becomes valid again.
func (l *guardedListener) checkFile() bool {
	err := web.Validate(l.file)
	switch broken := err != nil; {
	case broken && !l.isBroken:
		l.log.Error("--web-config-file is invalid: only probes are answered until it is fixed",
			"file", l.file, "error", err)
	case !broken && l.isBroken:
		l.log.Info("--web-config-file is valid again", "file", l.file)
	}
	l.isBroken = err != nil
	return l.isBroken
}

// end closes the server for probes and its connections.
func (l *guardedListener) end() {
	if l.probeServer != nil {
		l.probeServer.Close()
	}
}

// chanListener is a listener that accepts connections from a channel.
type chanListener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept returns the next connection from the channel.
func (l *chanListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, errors.New("accept: the listener is closed")
	}
}

func (l *chanListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *chanListener) Addr() net.Addr { return l.addr }

// hosts are the host names, in lower case, for which the page and the status are served, in
// addition to IP addresses and localhost.
//
// A malicious web page whose host name resolves to this machine (DNS rebinding) lets a browser send
// requests with that name, and could read the responses. It can use neither an IP address nor a
// name that only this machine knows: its own host name, and those in /etc/hosts, which contains
// that of a pod.
type hosts []string

// newHosts returns the machine's names and additional ones.
func newHosts(additional []string) (known hosts) {
	if own, err := os.Hostname(); err == nil {
		known = append(known, own)
	}
	listed, _ := os.ReadFile("/etc/hosts") // optional
	for line := range strings.Lines(string(listed)) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 {
			known = append(known, words[1:]...)
		}
	}
	known = append(known, additional...)
	for i := range known {
		known[i] = strings.ToLower(known[i])
	}
	return known
}

// has reports whether the Host of a request is permitted. It can be missing in HTTP/1.0, which
// browsers do not use.
func (h hosts) has(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	address, _, _ := strings.Cut(host, "%") // removes the zone of an IPv6 address
	return host == "" || host == "localhost" || net.ParseIP(address) != nil || slices.Contains(h, host)
}

// guard rejects requests with another host name.
func (h hosts) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.has(r.Host) {
			http.Error(w, "this host name is not allowed; use the daemon's IP address, or add the name to its "+
				"--http-hosts", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// The page consists of a few static files, without a build step or external resources. All URLs are relative,
// so that it works with kubectl port-forward and any path prefix of a proxy. It requests and renders /status.
//
//go:embed page
var pageFiles embed.FS

// pagePolicy permits the page to load its own files and to send requests to its own daemon only.
// Values from clients are shown as text nodes; trusted types make the browser reject code that
// would parse them as HTML.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " +
	"'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; " +
	"trusted-types 'none'"

// addPage serves the page at / and its files at /page/.
func addPage(handle func(pattern string, handler http.HandlerFunc)) {
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
		r.URL.Path = "/page/" // serves page/index.html
		serve(w, r)
	})
}
