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

// guardedListener keeps the probes outside of the password. A kubelet has none,
// and can't be given one without writing it into the pod; what it learns is one
// word. TLS, and client certificates where the file asks for them, hold for the
// probes too.
//
// The toolkit puts its own handler before ours just before it begins to accept,
// in the same goroutine. So the first Accept is where ours can be put before
// both, and before any connection can see the handler.
//
// The toolkit reads the file again for each connection. A file that can't be used any
// more would end every TLS handshake, and a kubelet then the daemon; so meanwhile a
// server of its own takes connections, which answers probes and nothing else, with
// the last certificate that could be used.
type guardedListener struct {
	net.Listener
	server    *http.Server
	log       *slog.Logger
	file      string
	open      http.Handler // ours, without a password
	placed    bool
	isBroken  bool
	forProbes *http.Server // while the file is broken; nil without TLS
	toProbes  chan net.Conn
}

func (l *guardedListener) Accept() (net.Conn, error) {
	if !l.placed {
		l.placed = true
		l.server.Handler = probesFirst(l.open, l.server.Handler)
		l.prepareForProbes()
	}
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.forProbes == nil || !l.broken() {
			return conn, err
		}
		l.toProbes <- conn
	}
}

// probesFirst has probes answered by one handler and all else by another.
func probesFirst(open, guarded http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" || r.URL.Path == "/readyz" {
			open.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// prepareForProbes starts the server for probes, where the file asks for TLS.
func (l *guardedListener) prepareForProbes() {
	if config := l.server.TLSConfig; config == nil || config.GetCertificate == nil {
		return // a broken file then ends no connection, and probes do not need it
	}
	config := l.server.TLSConfig.Clone()
	config.GetConfigForClient = nil
	config.GetCertificate = lastGood(config.GetCertificate)
	config.NextProtos = nil
	unusable := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the file of --web-config-file can't be used any more; the daemon's log says why",
			http.StatusInternalServerError)
	})
	l.toProbes = make(chan net.Conn)
	l.forProbes = &http.Server{
		Handler: probesFirst(l.open, unusable), TLSConfig: config,
		ReadHeaderTimeout: l.server.ReadHeaderTimeout, ReadTimeout: l.server.ReadTimeout,
		WriteTimeout: l.server.WriteTimeout, MaxHeaderBytes: l.server.MaxHeaderBytes,
		ErrorLog: l.server.ErrorLog, ConnState: l.server.ConnState,
	}
	l.forProbes.SetKeepAlivesEnabled(false) // the next connection may find the file mended
	go l.forProbes.ServeTLS(&handedListener{addr: l.Addr(), conns: l.toProbes, closed: make(chan struct{})},
		"", "")
}

// lastGood remembers the last certificate that could be read. The first was read when
// the server began.
func lastGood(read func(*tls.ClientHelloInfo) (*tls.Certificate,
	error),
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

// broken says whether the file can't be used, and logs when that changes.
func (l *guardedListener) broken() bool {
	err := web.Validate(l.file)
	switch broken := err != nil; {
	case broken && !l.isBroken:
		l.log.Error("the web config file can't be used any more: only probes are answered until it is mended",
			"file", l.file, "error", err)
	case !broken && l.isBroken:
		l.log.Info("the web config file can be used again", "file", l.file)
	}
	l.isBroken = err != nil
	return l.isBroken
}

// end closes what the server for probes still answers.
func (l *guardedListener) end() {
	if l.forProbes != nil {
		l.forProbes.Close()
	}
}

// handedListener accepts the connections that it is handed.
type handedListener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *handedListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, errors.New("accept: the listener is closed")
	}
}

func (l *handedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *handedListener) Addr() net.Addr { return l.addr }

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
