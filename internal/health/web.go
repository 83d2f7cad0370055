package health

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
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
	server      *http.Server
	connections *connLimiter
	log         *slog.Logger
	file        string
	open        http.Handler // ours, without a password
	placed      bool
	isBroken    bool
	forProbes   *http.Server // while the file is broken; nil without TLS
	toProbes    chan net.Conn
}

func (l *guardedListener) Accept() (net.Conn, error) {
	if !l.placed {
		l.placed = true
		l.server.Handler = l.connections.watch(probesFirst(l.open, l.server.Handler))
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
		Handler: l.connections.watch(probesFirst(l.open, unusable)), TLSConfig: config,
		ReadHeaderTimeout: l.server.ReadHeaderTimeout, ReadTimeout: l.server.ReadTimeout,
		WriteTimeout: l.server.WriteTimeout, MaxHeaderBytes: l.server.MaxHeaderBytes,
		ErrorLog: l.server.ErrorLog, ConnState: l.server.ConnState, ConnContext: l.server.ConnContext,
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
