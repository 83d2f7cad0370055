package receiver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/conns"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/ingest/zipkin"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protowire"
)

// api is a receiver's API from the point of view of its senders.
type api struct {
	path, media string
	body        func(n int) []byte // returns a body with one counted span; each n gives another body
	open        func(t *testing.T, common func(*receiver.Config), upstream string) server
}

// server has the methods of receivers that the daemon uses.
type server struct {
	lifecycle interface {
		Start()
		Drain(ctx context.Context) error
		Addr() string
	}
	stats    func() receiver.Stats
	requests func() map[string]uint64
}

// senders has the APIs of all receivers, by the prefix of their flags. All tests of this file run for each of them.
var senders = map[string]api{
	"apm":    {"/v0.4/traces", "application/msgpack", inMsgpack, openDatadog},
	"otlp":   {"/v1/traces", "application/x-protobuf", inProtobuf, openOTLP},
	"zipkin": {"/api/v2/spans", "application/json", inZipkin, openZipkin},
}

func inMsgpack(n int) []byte {
	b, err := msgpack.Marshal([]any{[]any{map[string]any{
		"service": "shop", "name": "web.request", "resource": "GET /", "trace_id": n + 1, "span_id": n + 1,
		"start": time.Now().UnixNano(), "duration": 1000, "meta": map[string]string{"span.kind": "server"},
	}}})
	if err != nil {
		panic(err)
	}
	return b
}

func inProtobuf(n int) []byte {
	nested := func(number protowire.Number, message []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), message)
	}
	id := protowire.AppendFixed64(nil, uint64(n+1))
	s := append(nested(1, append(make([]byte, 8), id...)), nested(2, id)...)
	s = append(s, nested(5, []byte("GET /"))...)
	s = protowire.AppendVarint(protowire.AppendTag(s, 6, protowire.VarintType), 2)
	for number, at := range map[protowire.Number]int64{7: -1000, 8: 0} {
		s = protowire.AppendFixed64(protowire.AppendTag(s, number, protowire.Fixed64Type),
			uint64(time.Now().UnixNano()+at))
	}
	return nested(1, nested(2, nested(2, s)))
}

func inZipkin(n int) []byte {
	return fmt.Appendf(nil,
		`[{"traceId":"%016x","id":"%016x","kind":"SERVER","name":"get /","timestamp":%d,"duration":1000,`+
			`"localEndpoint":{"serviceName":"shop"}}]`, n+1, n+1, time.Now().UnixMicro()-1000)
}

func openDatadog(t *testing.T, common func(*receiver.Config), upstream string) server {
	config := datadog.DefaultConfig()
	common(&config.Config)
	config.Agent = receiver.Upstream{Network: "tcp", Address: upstream}
	config.Features = func() (receiver.Features, <-chan struct{}) {
		return receiver.Features{Stats: true, SpanKinds: []string{"server"}}, nil
	}
	s, err := datadog.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return server{s, func() receiver.Stats {
		return s.Stats().Stats
	}, func() map[string]uint64 { return s.Stats().Requests }}
}

func openOTLP(t *testing.T, common func(*receiver.Config), upstream string) server {
	config := otlp.DefaultConfig()
	common(&config.Config)
	to, err := otlp.ParseCollector("http://" + upstream)
	if err != nil {
		t.Fatal(err)
	}
	config.Forward = to
	s, err := otlp.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return server{s, func() receiver.Stats {
		return s.Stats().Stats
	}, func() map[string]uint64 { return s.Stats().Requests }}
}

func openZipkin(t *testing.T, common func(*receiver.Config), upstream string) server {
	config := zipkin.DefaultConfig()
	common(&config.Config)
	to, err := zipkin.Protocol.Parse("http://" + upstream)
	if err != nil {
		t.Fatal(err)
	}
	config.Forward = to
	s, err := zipkin.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return server{s, s.Server.Stats, func() map[string]uint64 { return s.Status().Requests }}
}

// subject is a receiver on a Unix socket, with an upstream that the test controls.
type subject struct {
	server
	api
	t      *testing.T
	socket string
}

// each runs a test for each receiver. answer is the handler of the upstream.
func each(t *testing.T, change func(*receiver.Config), answer http.HandlerFunc, test func(*subject)) {
	t.Helper()
	for name := range new(daemon.Config).Receivers() {
		t.Run(name, func(t *testing.T) {
			a, known := senders[name]
			if !known {
				t.Fatal("senders has no entry for this receiver")
			}
			upstream := httptest.NewServer(answer)
			t.Cleanup(upstream.Close)
			s := &subject{api: a, t: t, socket: filepath.Join(t.TempDir(), "s")}
			s.server = a.open(t, func(c *receiver.Config) {
				c.Socket, c.Log = socket.Config{Path: s.socket, Mode: 0o600}, slog.New(slog.DiscardHandler)
				c.Addr = "127.0.0.1:0"
				c.Admit = publishers(t)
				if change != nil {
					change(c)
				}
			}, upstream.Listener.Addr().String())
			test(s)
		})
	}
}

// publishers returns publishers with rings that are drained.
func publishers(t *testing.T) *admit.Publishers {
	counting := aggregate.DefaultConfig()
	counting.Deliver = func(s *aggregate.Sealed) {
		s.Delivery.Resolve(nil)
		s.Release()
	}
	aggregator, err := aggregate.New(counting)
	if err != nil {
		t.Fatal(err)
	}
	aggregator.Start()
	t.Cleanup(aggregator.Stop)
	config := admit.DefaultConfig()
	config.Aggregator = aggregator
	by, err := admit.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return by
}

// start serves requests until the end of the test.
func (s *subject) start() {
	s.lifecycle.Start()
	s.t.Cleanup(func() {
		if err := s.lifecycle.Drain(context.Background()); err != nil {
			s.t.Error(err)
		}
		if got := s.stats(); got.BufferedBytes != 0 || got.Serving != 0 {
			s.t.Errorf("resources are not released: %+v", got)
		}
	})
}

func (s *subject) dial() net.Conn { return s.dialBy("unix", s.socket) }

func (s *subject) dialBy(network, address string) net.Conn {
	s.t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// networks has the network of each address of a receiver.
func (s *subject) networks() map[string]string {
	return map[string]string{"unix": s.socket, "tcp": s.lifecycle.Addr()}
}

// text returns an HTTP/1.1 request with a body.
func (s *subject) text(body []byte) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		s.path, s.media, len(body), body)
}

// chunks returns an HTTP/1.1 request with a chunked body.
func (s *subject) chunks(body []byte) []byte {
	return fmt.Appendf(nil,
		"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"%x\r\n%s\r\n0\r\n\r\n", s.path, s.media, len(body), body)
}

// write writes an HTTP/1.1 request.
func (s *subject) write(to io.Writer, body []byte) {
	s.t.Helper()
	if _, err := to.Write(s.text(body)); err != nil {
		s.t.Error(err)
	}
}

// status reads a response and returns its status.
func status(from io.Reader) (int, error) {
	answer, err := http.ReadResponse(bufio.NewReader(from), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

func took(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

// TestRequest_CountedAndForwarded sends consecutive requests on one connection.
func TestRequest_CountedAndForwarded(t *testing.T) {
	each(t, nil, took, func(s *subject) {
		s.start()
		c := s.dial()
		for n := range 10 {
			s.write(c, s.body(n))
			if code, err := status(c); code != http.StatusOK || err != nil {
				s.t.Errorf("request %d: answered %d, %v", n, code, err)
			}
		}
		if got := s.requests(); got["counted"] != 10 {
			s.t.Errorf("%v; %+v", got, s.stats())
		}
	})
}

// TestConnection_OverLimit checks that a connection over the limit gets a response before it has sent a request,
// and that open connections are not affected.
func TestConnection_OverLimit(t *testing.T) {
	of := func(c *receiver.Config) { c.MaxConnections = 2 } // the test itself uses one of the connections
	each(t, of, took, func(s *subject) {
		s.start()
		inside, body := s.dial(), s.body(1)
		half := len(body) / 2
		_, _ = fmt.Fprintf(inside,
			"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
			s.path, s.media, len(body), body[:half])
		eventually.True(s.t, "a request is in flight", func() bool { return s.stats().BufferedBytes > 0 })
		answer, _ := io.ReadAll(s.dial())
		if !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || s.stats().Refused != 1 ||
			s.stats().Connections != 1 {
			s.t.Errorf("a connection over the limit got %q; %+v", answer, s.stats())
		}
		_, _ = inside.Write(body[half:])
		if code, err := status(inside); code != http.StatusOK {
			s.t.Errorf("the open connection is answered %d, %v", code, err)
		}
		eventually.True(s.t, "an idle connection is closed for the next one", func() bool {
			next := s.dial()
			_, _ = next.Write(s.text(s.body(2)))
			code, _ := status(next)
			return code == http.StatusOK
		})
	})
}

// TestStop_ConnectedSendersAreAnswered stops a server immediately after its start, when two hundred senders have
// connected and written their requests.
func TestStop_ConnectedSendersAreAnswered(t *testing.T) {
	const senders = 200
	of := func(c *receiver.Config) { c.MaxConnections = 2 * senders }
	each(t, of, took, func(s *subject) {
		var answering sync.WaitGroup
		for n := range senders {
			c := s.dial()
			s.write(c, s.body(n))
			answering.Go(func() {
				if code, err := status(c); code != http.StatusOK {
					s.t.Errorf("answered %d, %v", code, err)
				}
			})
		}
		s.lifecycle.Start()
		if err := s.lifecycle.Drain(s.t.Context()); err != nil {
			s.t.Error(err)
		}
		answering.Wait()
		if got := s.requests(); got["counted"] != senders {
			s.t.Errorf("%v", got)
		}
	})
}

// TestRetries_CountOnce retries on the same and on other connections, after the response was read or lost.
func TestRetries_CountOnce(t *testing.T) {
	each(t, nil, took, func(s *subject) {
		s.start()
		for network, address := range s.networks() {
			body, first := s.body(len(network)), s.dialBy(network, address)
			for range 2 {
				s.write(first, body)
				if code, err := status(first); code != http.StatusOK {
					s.t.Errorf("answered %d, %v", code, err)
				}
			}
			left := s.dialBy(network, address)
			s.write(left, body)
			if _, err := io.ReadFull(left, make([]byte, 1)); err != nil {
				s.t.Fatal(err)
			}
			left.Close()
			again := s.dialBy(network, address)
			if _, err := again.Write(s.chunks(body)); err != nil {
				s.t.Fatal(err)
			}
			if code, err := status(again); code != http.StatusOK {
				s.t.Errorf("answered %d, %v", code, err)
			}
		}
		if got := s.requests(); got["counted"] != 2 || got["duplicate"] != 6 {
			s.t.Errorf("%v", got)
		}
	})
}

// TestRetries_AtTheSameTimeCountOnce has all attempts in flight before the upstream responds to one.
func TestRetries_AtTheSameTimeCountOnce(t *testing.T) {
	const tries = 16
	var here sync.WaitGroup
	waits := func(w http.ResponseWriter, r *http.Request) {
		took(w, r)
		here.Done()
		here.Wait()
	}
	of := func(c *receiver.Config) { c.MaxConnections = 4 * tries }
	each(t, of, waits, func(s *subject) {
		s.start()
		here.Add(tries)
		body := s.body(1)
		var answering sync.WaitGroup
		for range tries {
			c := s.dial()
			answering.Go(func() {
				s.write(c, body)
				if code, err := status(c); code != http.StatusOK {
					s.t.Errorf("answered %d, %v", code, err)
				}
			})
		}
		answering.Wait()
		if got := s.requests(); got["counted"] != 1 || got["duplicate"] != tries-1 {
			s.t.Errorf("%v", got)
		}
	})
}

// TestUpstreamError_RetryCountsOnce checks that a request that the upstream refuses is counted, and that its retry
// is not.
func TestUpstreamError_RetryCountsOnce(t *testing.T) {
	tries := 0
	fails := func(w http.ResponseWriter, r *http.Request) {
		took(w, r)
		switch tries++; tries % 3 {
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	each(t, nil, fails, func(s *subject) {
		s.start()
		body := s.body(1)
		for range 2 {
			c := s.dial()
			s.write(c, body)
			if code, _ := status(c); code == http.StatusOK {
				s.t.Error("a request is accepted that the upstream has not accepted")
			}
		}
		c := s.dial()
		s.write(c, body)
		if code, err := status(c); code != http.StatusOK {
			s.t.Errorf("answered %d, %v", code, err)
		}
		if got := s.requests(); got["counted"] != 1 || got["duplicate"] != 2 {
			s.t.Errorf("%v", got)
		}
	})
}

// TestBody_TruncatedIsNotCounted also checks that the memory is released.
func TestBody_TruncatedIsNotCounted(t *testing.T) {
	each(t, nil, took, func(s *subject) {
		s.start()
		c := s.dial()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\nhalf",
			s.path, s.media)
		if err := c.(*net.UnixConn).CloseWrite(); err != nil {
			s.t.Fatal(err)
		}
		if code, _ := status(c); code/100 == 2 {
			s.t.Errorf("answered %d", code)
		}
		eventually.True(s.t, "it is incomplete", func() bool { return s.requests()["incomplete"] == 1 })
	})
}

// TestPipelining_EachRequestIsAnswered checks the order of the responses with a slow upstream.
func TestPipelining_EachRequestIsAnswered(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) {
		took(w, r)
		time.Sleep(20 * time.Millisecond)
	}
	each(t, nil, slow, func(s *subject) {
		s.start()
		c := s.dial()
		if _, err := c.Write(append(s.text(s.body(1)), s.text(s.body(2))...)); err != nil {
			s.t.Fatal(err)
		}
		from := bufio.NewReader(c)
		for range 2 {
			if code, err := status(from); code != http.StatusOK {
				s.t.Errorf("answered %d, %v", code, err)
			}
		}
		if got := s.requests(); got["counted"] != 2 {
			s.t.Errorf("%v", got)
		}
	})
}

// TestRequest_CanceledIfSenderDisconnects checks that the request to a hanging upstream is canceled when the sender
// disconnects.
func TestRequest_CanceledIfSenderDisconnects(t *testing.T) {
	came, ended := make(chan struct{}), make(chan struct{})
	hangs := func(w http.ResponseWriter, r *http.Request) {
		took(w, r)
		came <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}
	each(t, nil, hangs, func(s *subject) {
		s.start()
		number := 0
		for network, address := range s.networks() {
			for _, text := range []func([]byte) []byte{s.text, s.chunks} {
				number++
				c := s.dialBy(network, address)
				if _, err := c.Write(text(s.body(number))); err != nil {
					s.t.Fatal(err)
				}
				<-came
				c.Close()
				<-ended
				eventually.True(s.t, "no request is in flight", func() bool { return s.stats().Serving == 0 })
			}
		}
	})
}

// TestHeader_LineLimitPerRequest checks that the limit on header lines applies to each request of a connection
// separately.
func TestHeader_LineLimitPerRequest(t *testing.T) {
	each(t, nil, took, func(s *subject) {
		s.start()
		c := s.dial()
		for n, lines := range []int{100, 100, 100, 200} {
			body := s.body(n)
			fmt.Fprintf(c,
				"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n",
				s.path, s.media, strings.Repeat("X: y\r\n", lines), len(body), body)
			if code, err := status(c); (code == http.StatusOK) != (lines < conns.MaxHeaderLines) {
				s.t.Errorf("request %d of %d lines is answered %d, %v", n, lines, code, err)
			}
		}
	})
}
