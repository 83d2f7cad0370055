package door

import (
	"context"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/conns"
)

// Drain stops accepting and lets the requests that are here come to their end, until the
// context ends; what is left is cut off then, and its senders try again. Nothing is published
// after it.
//
// A connection of HTTP/1.1 ends itself behind its request and what has come behind that. net/http is not
// told until then: once it knows, it closes a connection whose answer it has just written, and cuts off
// what has come behind it. One of HTTP/2 is told which of its requests are answered still.
func (s *Server) Drain(ctx context.Context) error {
	close(s.stopping)
	s.listeners.EndAccepting(ctx)
	s.limiter.WakeIdles(isOfLines)
	s.awaitLines(ctx)
	err := s.endStreams(ctx)
	if err != nil {
		err = fmt.Errorf("drain %s: %w; raise --shutdown-grace", s.setup.Brings, err)
		s.http.Close()
		s.limiter.CloseAll()
	}
	// net/http does not wait for requests of HTTP/2 whose connection is gone.
	conns.Await(ctx, func() bool { return s.traffic.serving.Load() == 0 })
	s.publishers.Close()
	close(s.ended)
	s.listeners.Wait()
	s.loops.Wait()
	if idle, is := s.transport.(interface{ CloseIdleConnections() }); is {
		idle.CloseIdleConnections()
	}
	if s.upstreams != nil {
		s.upstreams.Close()
	}
	s.listeners.Release()
	return err
}

// awaitLines waits until connections of HTTP/1.1 have ended, for half of the time: a sender that never
// ends its request takes from those of HTTP/2 no more than that.
func (s *Server) awaitLines(ctx context.Context) {
	if end, has := ctx.Deadline(); has {
		half, cancel := context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
		ctx = half
	}
	conns.Await(ctx, func() bool { return s.limiter.CountOf(isOfLines) == 0 })
}

// farewell is in which a sender that speaks HTTP/2 hears that its connection takes no more
// requests, and looks every how often such connections are looked for that have none left.
const (
	farewell = 250 * time.Millisecond
	looks    = 10 * time.Millisecond
)

// endStreams has every connection of HTTP/2 end behind its last request. net/http alone
// would wait another second for the sender to close it.
func (s *Server) endStreams(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.http.Shutdown(ctx) }()
	looking := time.NewTimer(farewell)
	defer looking.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-looking.C:
			s.limiter.CloseIdles(func(*conns.Conn) bool { return true })
			looking.Reset(looks)
		}
	}
}

// isOfLines says whether a connection speaks HTTP/1.1, as far as it has spoken.
func isOfLines(c *conns.Conn) bool { return !c.HTTP2.Load() }
