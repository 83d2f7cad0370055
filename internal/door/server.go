package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/conns"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// New opens what senders connect to. Nothing is accepted before Start. One body may need so many
// publishers.
func New(d Door, config *Config, setup Setup, batches int) (*Server, error) {
	s := &Server{
		door: d, config: *config, setup: setup, Log: NewRequestLog(config.Log),
		results:    make([]atomic.Uint64, len(setup.Results)),
		limiter:    conns.NewLimiter(config.MaxConnections),
		Bodies:     bodies.NewPool(config.MaxBody, config.MaxBodyBytes),
		publishers: NewPublishers(config.Admit, config.Publishers(batches)),
		counted:    bodies.NewCounted(),
		stopping:   make(chan struct{}),
		ended:      make(chan struct{}),
	}
	if setup.IsLast {
		s.publishers = NewLastPublishers(config.Admit, config.Publishers(batches))
	}
	s.waits.MaxWait, s.waits.Stopping = config.Buffer, s.stopping
	switch behind := &s.setup.Behind; {
	case behind.Transport != nil:
		s.transport = behind.Transport(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return s.waits.Dial(ctx, behind.Connect)
		})
	case behind.Address != "":
		s.upstreams = http1.NewUpstreams(behind.Connect, &s.waits, behind.Most)
	}
	s.plain = &http1.Server{
		Handler: s, Limiter: s.limiter, Bodies: &s.Bodies, Counted: s.counted, HTTP2: setup.HTTP2 != nil,
		Header: setup.Header, Read: setup.Read, Write: setup.Write, Between: setup.Between,
	}
	speaks := &http.Protocols{}
	speaks.SetHTTP1(true)
	speaks.SetUnencryptedHTTP2(setup.HTTP2 != nil)
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), Protocols: speaks, HTTP2: setup.HTTP2,
		ReadHeaderTimeout: setup.Header, IdleTimeout: setup.Between, MaxHeaderBytes: http1.MaxHeaderBytes,
		ConnContext: http1.ConnContext, ConnState: s.plain.Follow, ErrorLog: log.New(io.Discard, "", 0),
	}
	s.listeners.Of = conns.Listener{
		Limiter: s.limiter, AllowUIDs: config.AllowUIDs, Rejected: s.rejected, Wrap: s.plain.Wrap,
	}
	if err := s.listen(); err != nil {
		s.Abandon()
		return nil, err
	}
	return s, nil
}

func (s *Server) listen() error {
	if s.config.Socket.Path != "" {
		if err := s.listeners.OpenSocket(s.config.Socket); err != nil {
			return fmt.Errorf("listen for %s: %w", s.setup.Brings, err)
		}
	}
	if s.config.Addr != "" {
		if err := s.listeners.OpenTCP(s.config.Addr, s.config.Given); err != nil {
			return fmt.Errorf("open %s: %w; choose another --%s-addr", s.setup.Brings, err, s.setup.Flags)
		}
	}
	return nil
}

// rejected says who finds no room, and for want of what.
func (s *Server) rejected(process int32) {
	by := "nobody knows which, over TCP"
	if process != 0 {
		by = strconv.Itoa(int(process))
	}
	s.Log.Write(slog.LevelWarn, "a connection is refused, since there are as many as there may be, or "+
		"half of them are its process's; look who holds so many, or raise --"+
		s.setup.Flags+"-max-connections",
		"brings", s.setup.Brings, "connections", s.config.MaxConnections, "process", by)
}

// Abandon gives the sockets back where nothing was started.
func (s *Server) Abandon() { s.listeners.Release() }

// expireEvery is how often what nobody uses is let go of: publishers, buffers and connections.
const expireEvery = time.Minute

// Start accepts senders.
func (s *Server) Start() {
	changed := s.door.Learn()
	s.loops.Go(func() {
		expiring := time.NewTicker(expireEvery)
		defer expiring.Stop()
		for {
			select {
			case <-changed:
				changed = s.door.Learn()
			case now := <-expiring.C:
				s.publishers.Expire(now)
				s.Bodies.DropSpares()
				if s.upstreams != nil {
					s.upstreams.Expire(now)
				}
			case <-s.ended:
				return
			}
		}
	})
	if s.listeners.HasSocket() {
		s.loops.Go(func() { s.listeners.Watch(s.ended, s.config.Log) })
	}
	s.listeners.Serve(func(on net.Listener) {
		if err := s.http.Serve(on); !errors.Is(err, http.ErrServerClosed) && !s.IsStopping() {
			s.config.Log.Error(s.setup.Ended, "error", err)
		}
	})
	s.config.Log.Info("taking "+s.setup.Brings, "socket", s.config.Socket.Path, "addr", s.Addr())
}

// ServeOn accepts senders of another listener, until it ends.
func (s *Server) ServeOn(from net.Listener) error {
	on := s.listeners.Of
	on.Listener = from
	return s.http.Serve(&on) //nolint:wrapcheck // net/http's own
}

// Lack is why senders can't find the socket, nil where they can or there is none.
func (s *Server) Lack() error { return s.listeners.Lack() }

// Addr is where it listens over TCP, "" where it does not.
func (s *Server) Addr() string { return s.listeners.Addr() }
