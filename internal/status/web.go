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
	server          *http.Server
	log             *slog.Logger
	file            string
	unauthenticated http.Handler // handler without authentication
	firstAccept     sync.Once    // exempts probes and starts the probe server
	isFileInvalid   bool         // result of the last check
	probeServer     *http.Server // handles connections while the file is invalid; nil without TLS
	probeConns      chan net.Conn
}

// Accept returns the next connection for the main server. While that server can't handle connections,
// Accept passes them to the probe server, which answers only health checks.
func (l *guardedListener) Accept() (net.Conn, error) {
	l.firstAccept.Do(func() { // not earlier, because the toolkit adds authentication just before it calls Accept
		l.exemptProbes()
		l.startProbeServer()
	})
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.isMainServerUsable() {
			return conn, nil
		}
		l.probeConns <- conn // the listener of the probe server accepts it
	}
}

// exemptProbes exempts probes from the authentication that the toolkit has added to the main server.
func (l *guardedListener) exemptProbes() {
	l.server.Handler = splitProbes(l.unauthenticated, l.server.Handler)
}

// isMainServerUsable reports whether the main server can handle a connection. It returns false if TLS
// is configured and the web configuration file is invalid, because each TLS handshake would fail.
func (l *guardedListener) isMainServerUsable() bool {
	if l.probeServer == nil { // TLS is not configured
		return true
	}
	return l.validateFile() == nil
}

// splitProbes returns a handler that passes probes, requests for /livez and /readyz, to the handler
// probes, and all other requests to the handler others.
func splitProbes(probes, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" || r.URL.Path == "/readyz" {
			probes.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// startProbeServer starts a second server, which handles connections while the web configuration file is
// invalid. Without TLS it is not needed: the main server can answer probes even then.
func (l *guardedListener) startProbeServer() {
	hasTLS := l.server.TLSConfig != nil && l.server.TLSConfig.GetCertificate != nil
	if !hasTLS {
		return
	}
	l.probeConns = make(chan net.Conn)
	l.probeServer = newProbeServer(l.server, l.unauthenticated)
	listener := &chanListener{addr: l.Addr(), conns: l.probeConns, closed: make(chan struct{})}
	go l.probeServer.ServeTLS(listener, "", "")
}

// newProbeServer returns the server that handles connections while the web configuration file is invalid. It answers
// probes (health checks) with the handler probes, and rejects all other requests. It has the timeouts and the last
// valid certificate of the main server.
func newProbeServer(main *http.Server, probes http.Handler) *http.Server {
	reject := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the file of --web-config-file is invalid; see the daemon's log",
			http.StatusInternalServerError)
	})
	server := &http.Server{
		Handler: splitProbes(probes, reject), TLSConfig: probeTLSConfig(main.TLSConfig),
		ReadHeaderTimeout: main.ReadHeaderTimeout, ReadTimeout: main.ReadTimeout,
		WriteTimeout: main.WriteTimeout, MaxHeaderBytes: main.MaxHeaderBytes,
		ErrorLog: main.ErrorLog, ConnState: main.ConnState,
	}
	server.SetKeepAlivesEnabled(false) // the file may be valid for the next connection
	return server
}

// probeTLSConfig returns the TLS configuration of the server that answers probes (health checks) while the web
// configuration file is invalid: a copy of that of the main server, with the last valid certificate.
func probeTLSConfig(main *tls.Config) *tls.Config {
	config := main.Clone()
	config.GetConfigForClient = nil // it reads the file
	config.GetCertificate = keepLastCertificate(config.GetCertificate)
	config.NextProtos = nil // ServeTLS adds the protocols that the server supports
	return config
}

// getCertificate is the type of tls.Config.GetCertificate.
type getCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// keepLastCertificate wraps a function that reads a certificate from a file. The returned function returns
// the last certificate that was read if the file is invalid.
func keepLastCertificate(read getCertificate) getCertificate {
	var mu sync.Mutex
	last, _ := read(nil) // the certificate is the same for all clients; nil if the file is invalid
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		certificate, err := read(hello)
		if err == nil {
			last = certificate
		}
		if last == nil {
			return nil, err
		}
		return last, nil
	}
}

// validateFile returns an error if the web configuration file is invalid. It logs a message if the
// file was valid at the last call and is invalid now, or the other way round.
func (l *guardedListener) validateFile() error {
	wasInvalid := l.isFileInvalid
	err := web.Validate(l.file)
	l.isFileInvalid = err != nil
	if l.isFileInvalid && !wasInvalid {
		l.log.Error("--web-config-file is invalid: only probes are answered until it is fixed",
			"file", l.file, "error", err)
	}
	if !l.isFileInvalid && wasInvalid {
		l.log.Info("--web-config-file is valid again", "file", l.file)
	}
	return err
}

// closeProbeServer closes the server for probes and its connections, if it was started.
func (l *guardedListener) closeProbeServer() {
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

// Accept returns the next connection from the channel. It returns an error after Close.
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

// newHosts returns the host name of this machine, the names in /etc/hosts, and additional names.
func newHosts(additional []string) (known hosts) {
	names := slices.Concat(etcHosts(), additional)
	if hostname, err := os.Hostname(); err == nil {
		names = append(names, hostname)
	}
	for _, name := range names {
		known = append(known, strings.ToLower(name))
	}
	return known
}

// etcHosts returns the host names in /etc/hosts, or nil if the file can't be read.
func etcHosts() (names []string) {
	text, _ := os.ReadFile("/etc/hosts")
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) > 1 {
			names = append(names, fields[1:]...) // the first field is the IP address
		}
	}
	return names
}

// allows reports whether a request with the given Host header is permitted. An empty host is
// permitted, because it can't be from a browser: browsers always send a Host header.
func (h hosts) allows(hostHeader string) bool {
	name := hostName(hostHeader)
	if name == "" || name == "localhost" {
		return true
	}
	withoutZone, _, _ := strings.Cut(name, "%") // the zone of an IPv6 address
	isIP := net.ParseIP(withoutZone) != nil
	return isIP || slices.Contains(h, name)
}

// hostName returns the host name or IP address in a Host header, in lower case, without brackets, port and
// final period.
func hostName(hostHeader string) string {
	host, _, err := net.SplitHostPort(hostHeader)
	if err != nil { // there is no port
		host = hostHeader
	}
	host = strings.Trim(host, "[]")
	host = strings.TrimSuffix(host, ".")
	return strings.ToLower(host)
}

// guard returns a handler that rejects requests whose Host header is not permitted, and passes all
// other requests to next.
func (h hosts) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.allows(r.Host) {
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

// addPage registers the handlers of the web page: the page at /, and its files at /page/.
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
