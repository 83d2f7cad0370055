package receiver_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestStop_CountedRequestsAreAnswered sends requests on idle connections at the start of the shutdown. A sender
// without a response would retry at the next daemon, which does not know that the request was counted.
func TestStop_CountedRequestsAreAnswered(t *testing.T) {
	const senders, rounds = 32, 12
	var slowly atomic.Bool
	slow := func(w http.ResponseWriter, r *http.Request) {
		took(w, r)
		if slowly.Load() {
			time.Sleep(25 * time.Millisecond)
		}
	}
	of := func(c *receiver.Config) { c.MaxConnections = 2 * senders }
	for round := range rounds {
		each(t, of, slow, func(s *subject) {
			s.lifecycle.Start()
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
					_, _ = c.Write(s.text(s.body(n))) // fails if the server has closed the connection
					if code, _ := status(c); code == http.StatusOK {
						answered.Add(1)
					}
				})
			}
			time.Sleep(time.Duration(round) * 3 * time.Millisecond)
			if err := s.lifecycle.Drain(s.t.Context()); err != nil {
				s.t.Error(err)
			}
			answering.Wait()
			if got := s.requests(); got["counted"] != answered.Load()+senders {
				s.t.Errorf("%d are answered of %v", answered.Load(), got)
			}
		})
	}
}

// TestStop_LastResponseClosesConnection checks that a request in flight at the start of the shutdown gets a response
// with Connection: close.
func TestStop_LastResponseClosesConnection(t *testing.T) {
	come, goOn := make(chan struct{}, 1), make(chan struct{})
	slow := func(w http.ResponseWriter, r *http.Request) {
		took(w, r)
		come <- struct{}{}
		<-goOn
	}
	each(t, nil, slow, func(s *subject) {
		goOn = make(chan struct{})
		s.lifecycle.Start()
		c := s.dial()
		s.write(c, s.body(1))
		<-come
		ended := make(chan error)
		go func() { ended <- s.lifecycle.Drain(s.t.Context()) }()
		eventually.True(s.t, "new connections are refused", func() bool {
			late, err := net.Dial("tcp", s.lifecycle.Addr())
			if err == nil {
				late.Close()
			}
			return err != nil
		})
		close(goOn)
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusOK || !answer.Close {
			s.t.Errorf("answered %+v, %v", answer, err)
		}
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

// TestStop_UnfinishedRequestCostsNoOther has one sender that stops in the middle of a header, and others
// that send consecutive requests over HTTP/2 until GOAWAY. Every counted request gets a response.
func TestStop_UnfinishedRequestCostsNoOther(t *testing.T) {
	const senders = 8
	slow := func(w http.ResponseWriter, r *http.Request) {
		took(w, r)
		time.Sleep(10 * time.Millisecond)
	}
	upstream := httptest.NewServer(http.HandlerFunc(slow))
	defer upstream.Close()
	s := openOTLP(t, func(c *receiver.Config) {
		c.Addr, c.Log, c.Admit = "127.0.0.1:0", slog.New(slog.DiscardHandler), publishers(t)
	}, upstream.Listener.Addr().String())
	s.lifecycle.Start()
	half, err := net.Dial("tcp", s.lifecycle.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if _, err := half.Write([]byte("POST /v1/traces HTTP/1.1\r\nHost")); err != nil {
		t.Fatal(err)
	}
	speaks := &http.Protocols{}
	speaks.SetUnencryptedHTTP2(true)
	by := &http.Transport{Protocols: speaks}
	defer by.CloseIdleConnections()
	sender := http.Client{Transport: by}
	var sending sync.WaitGroup
	var answered atomic.Uint64
	for first := range senders {
		sending.Go(func() {
			for n := first; ; n += senders {
				answer, err := sender.Post("http://"+s.lifecycle.Addr()+"/v1/traces", "application/x-protobuf",
					bytes.NewReader(inProtobuf(n)))
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, answer.Body); err == nil &&
					answer.StatusCode == http.StatusOK {
					answered.Add(1)
				}
				answer.Body.Close()
			}
		})
	}
	eventually.True(t, "the requests are in flight", func() bool { return answered.Load() > 2*senders })
	within, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_ = s.lifecycle.Drain(within) // returns an error because of the incomplete header
	half.Close()
	sending.Wait()
	if got := s.requests(); got["counted"] != answered.Load() {
		t.Errorf("%d are answered of %v", answered.Load(), got)
	}
}

// TestStop_IncompleteBodyIsAnswered checks that a connection with an incomplete body does not count as
// idle.
func TestStop_IncompleteBodyIsAnswered(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(took))
	defer upstream.Close()
	of := subject{t: t, api: senders["otlp"]}
	of.server = openOTLP(t, func(c *receiver.Config) {
		c.Addr, c.Log, c.Admit = "127.0.0.1:0", slog.New(slog.DiscardHandler), publishers(t)
	}, upstream.Listener.Addr().String())
	of.lifecycle.Start()
	idle := of.dialBy("tcp", of.lifecycle.Addr())
	if _, err := io.WriteString(idle,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	slow := of.dialBy("tcp", of.lifecycle.Addr())
	if _, err := io.WriteString(slow, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := status(slow); err != nil {
		t.Fatal(err)
	}
	text := of.text(of.body(2))
	if _, err := slow.Write(text[:len(text)-1]); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a body is being read", func() bool { return of.stats().BufferedBytes > 0 })
	within, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- of.lifecycle.Drain(within) }()
	_, _ = io.Copy(io.Discard, idle) // returns when the shutdown has closed the connection
	if _, err := slow.Write(text[len(text)-1:]); err != nil {
		t.Error(err)
	}
	if code, err := status(slow); code != http.StatusOK {
		t.Errorf("at the stop: answered %d, %v", code, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
