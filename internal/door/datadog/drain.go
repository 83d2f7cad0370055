package datadog

import (
	"context"
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/door/conns"
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
	s.listeners.EndAccepting(ctx)
	s.http.SetKeepAlivesEnabled(false) // closes who waits for a next request,
	s.limiter.CloseIdles(everyone)     // also where net/http has not had one yet
	conns.Await(ctx, func() bool { open, _ := s.limiter.Count(); return open == 0 })
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("drain traces: %w; raise --shutdown-grace", err)
		s.http.Close()
		s.limiter.CloseAll()
	}
	s.publishers.Close()
	s.unwatch()
	s.listeners.Wait()
	s.loops.Wait()
	s.transport.CloseIdleConnections()
	s.agents.Close()
	s.listeners.Release()
	return err
}

// everyone is every connection.
func everyone(*conns.Conn) bool { return true }

// IsStopping says whether the daemon has begun to stop.
func (s *Server) IsStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}
