package door_test

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// TestWhatIsCountedAtAStopIsAnswered: requests are on their way from their connections to net/http, as
// who is behind takes its time, when the stop begins. Whose sender hears nothing sends it again, to a
// daemon that does not know it.
func TestWhatIsCountedAtAStopIsAnswered(t *testing.T) {
	const senders, rounds = 32, 12
	var slowly atomic.Bool
	slow := func(w http.ResponseWriter, r *http.Request) {
		took(w, r)
		if slowly.Load() {
			time.Sleep(http1.SlowAnswer + 5*time.Millisecond)
		}
	}
	of := func(c *door.Config) { c.MaxConnections = 2 * senders }
	for round := range rounds {
		each(t, of, slow, func(s *subject) {
			s.life.Start()
			slowly.Store(false)
			var answering sync.WaitGroup
			var answered atomic.Uint64
			var kept []net.Conn
			for n := range senders {
				c := s.dial()
				s.write(c, s.body(senders+n))
				if code, err := status(c); code != http.StatusOK {
					s.t.Errorf("answered %d, %v", code, err)
				}
				kept = append(kept, c)
			}
			slowly.Store(true)
			for n, c := range kept {
				answering.Go(func() {
					_, _ = c.Write(s.text(s.body(n))) // some are closed by then
					if code, _ := status(c); code == http.StatusOK {
						answered.Add(1)
					}
				})
			}
			time.Sleep(time.Duration(round) * 3 * time.Millisecond)
			if err := s.life.Drain(s.t.Context()); err != nil {
				s.t.Error(err)
			}
			answering.Wait()
			if got := s.requests(); got["counted"] != answered.Load()+senders {
				s.t.Errorf("%d are answered of %v", answered.Load(), got)
			}
		})
	}
}

// TestWhatHasComeAtAStopIsAnswered: each of two hundred kept connections has another request in its
// buffer when the stop begins, unread. None is refused by a reset.
func TestWhatHasComeAtAStopIsAnswered(t *testing.T) {
	const senders = 200
	of := func(c *door.Config) { c.MaxConnections = 4 * senders }
	each(t, of, took, func(s *subject) {
		s.life.Start()
		var kept []net.Conn
		for n := range senders {
			for network, address := range s.networks() {
				c := s.dialBy(network, address)
				kept = append(kept, c)
				s.write(c, s.body(2*n+len(network)%2))
				if code, err := status(c); code != http.StatusOK {
					s.t.Errorf("answered %d, %v", code, err)
				}
			}
		}
		// net/http ends a connection whose answer it has just written, if the stop comes in that moment.
		time.Sleep(300 * time.Millisecond)
		for n, c := range kept {
			s.write(c, s.body(2*senders+n))
		}
		if err := s.life.Drain(s.t.Context()); err != nil {
			s.t.Error(err)
		}
		for _, c := range kept {
			if code, err := status(c); code != http.StatusOK {
				s.t.Errorf("at the stop: answered %d, %v", code, err)
			}
		}
		if got := s.requests(); got["counted"] != uint64(2*len(kept)) {
			s.t.Errorf("%v", got)
		}
	})
}
