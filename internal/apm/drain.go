package apm

import (
	"context"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/intake"
)

// Drain stops accepting and lets the requests that are here come to their end,
// until the context ends; what is left is cut off then, and its tracers try again.
// Nothing is published after it.
//
// First every connection that was accepted has its request answered and is closed, by
// net/http as if all were well: once it is shut down, it cuts off whatever request it has
// not read yet.
func (s *Server) Drain(ctx context.Context) error {
	close(s.stopping)
	s.endAccepting(ctx)
	s.http.SetKeepAlivesEnabled(false) // closes who waits for a next request,
	s.limiter.CloseIdles(everyone)     // also where net/http has not had one yet
	s.endRequests(ctx)
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("drain traces: %w; raise --shutdown-grace", err)
		s.http.Close()
		s.limiter.CloseAll()
	}
	s.publishers.Close()
	s.unwatch()
	s.accepting.Wait()
	s.loops.Wait()
	s.transport.CloseIdleConnections()
	s.agents.close()
	for _, release := range s.release {
		_ = release() // a listener that was served is closed already
	}
	return err
}

// endAccepting returns when whoever is to be accepted was, or the context has ended: who
// connected before. A socket that was given leaves who waits to the next daemon.
func (s *Server) endAccepting(ctx context.Context) {
	for _, shut := range s.shut {
		shut(ctx)
	}
	accepted := make(chan struct{})
	go func() {
		s.accepting.Wait()
		close(accepted)
	}()
	select {
	case <-accepted:
	case <-ctx.Done(): // for want of file descriptors; closing the listeners ends it
	}
}

// endRequests returns when no connection is left, or the context has ended.
func (s *Server) endRequests(ctx context.Context) {
	looking := time.NewTicker(time.Millisecond)
	defer looking.Stop()
	for open, _ := s.limiter.Count(); open > 0; open, _ = s.limiter.Count() {
		select {
		case <-looking.C:
		case <-ctx.Done():
			return
		}
	}
}

// everyone is every connection.
func everyone(*intake.Conn) bool { return true }

// isStopping says whether the daemon has begun to stop.
func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}
