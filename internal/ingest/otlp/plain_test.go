package otlp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/destination"
)

// text returns an HTTP/1.1 request as an SDK writes it.
func text(path, media string, body []byte, fields ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nConnection: keep-alive\r\n%sContent-Length: %d\r\n\r\n%s",
		path, media, strings.Join(fields, ""), len(body), body)
}

// inChunks returns a chunked body.
func inChunks(body []byte) string {
	return fmt.Sprintf("POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", mediaProtobuf, len(body), body)
}

// statusOf reads a complete response and returns its status.
func statusOf(t *testing.T, from *bufio.Reader) int {
	t.Helper()
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Header.Get("Date") == "" {
		t.Fatalf("answered %v: %v", resp, err)
	}
	return resp.StatusCode
}

// TestRequestsOfAConnection_EachIsAnswered covers consecutive requests of all kinds, with and without an upstream.
func TestRequestsOfAConnection_EachIsAnswered(t *testing.T) {
	good := exported("shop", 0, 5, 1)
	requests := []struct {
		text              string
		status, forwarded int
	}{
		{text("/v1/traces", mediaProtobuf, good), 200, 200},
		{text("/v1/traces", mediaProtobuf+"; charset=x", good), 200, 200},
		{text("/v1/traces", mediaProtobuf, packed(good), "Content-Encoding: gzip\r\n"), 200, 200},
		{text("/v1/traces", mediaJSON, []byte(inJSONText)), 200, 200},
		{text("/v1/traces", mediaProtobuf, good, headerComputedStats+": yes\r\n"), 200, 200},
		{text("/v1/traces", "text/plain", good), 415, 415},
		{text("/v1/metrics", mediaProtobuf, good), 200, 200},
		{strings.Replace(text("/v1/traces", mediaProtobuf, good), "POST", "PUT", 1), 405, 405},
		{text("/v1/traces", mediaProtobuf, []byte("nonsense")), 400, 200},
		{inChunks(good), 200, 200},
		{text("/v1/traces", mediaProtobuf, good), 200, 200},
	}
	for name, to := range map[string]*collector{
		"ends here": nil, "by HTTP": newCollector(t, false, nil), "by gRPC": newCollector(t, true, nil),
	} {
		var change func(*Config, *aggregate.Config)
		if to != nil {
			change = forwardTo(t, to.url())
		}
		h := newHarness(t, change)
		conn := h.dial()
		from := bufio.NewReader(conn)
		for i, r := range requests {
			want := r.status
			if to != nil {
				want = r.forwarded
			}
			_, _ = io.WriteString(conn, r.text)
			if got := statusOf(t, from); got != want {
				t.Errorf("%s: request %d was answered %d, want %d", name, i, got, want)
			}
		}
	}
}

// TestUpstream_MoreRequestsThanConnections sends more requests at a time than there are upstream connections. The other
// requests wait for a connection.
func TestUpstream_MoreRequestsThanConnections(t *testing.T) {
	const most = destination.MaxForwards + 8
	var here atomic.Int32
	all := make(chan struct{})
	to := newCollector(t, false, func(http.ResponseWriter, int) {
		if here.Add(1) == destination.MaxForwards {
			close(all)
		}
		<-all
	})
	forward := forwardTo(t, to.url())
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		forward(c, a)
		c.MaxConnections = 4 * most
	})
	var sending sync.WaitGroup
	for i := range most {
		conn := h.dial()
		_, _ = io.WriteString(conn, text("/v1/traces", mediaProtobuf, exported("shop", 100*i, 5, 1)))
		sending.Go(func() {
			if got := statusOf(t, bufio.NewReader(conn)); got != http.StatusOK {
				t.Errorf("answered %d", got)
			}
		})
	}
	sending.Wait()
	h.stop()
	if h.rows["name 0"] != 5*most {
		t.Errorf("counted %v", h.rows)
	}
}

// TestUpstream_ClosedConnectionIsSkipped covers upstreams that close their connection after each
// response, with or without a Connection: close header.
func TestUpstream_ClosedConnectionIsSkipped(t *testing.T) {
	for _, header := range []string{"", "Connection: close\r\n"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ended := make(chan struct{}, 1)
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+header+"Content-Length: 0\r\n\r\n")
				}
				if header == "" {
					c.Close()
				} else {
					t.Cleanup(func() { c.Close() })
				}
				ended <- struct{}{}
			}
		}()
		h := newHarness(t, forwardTo(t, "http://"+listener.Addr().String()))
		conn := h.dial()
		from := bufio.NewReader(conn)
		for i := range 5 {
			request := text("/v1/traces", mediaProtobuf, exported("shop", 100*i, 5, 1))
			// The transport may not have noticed yet that the connection has ended. Then the SDK retries.
			got := 0
			for got = http.StatusServiceUnavailable; got == http.StatusServiceUnavailable; {
				_, _ = io.WriteString(conn, request)
				got = statusOf(t, from)
			}
			if got != http.StatusOK {
				t.Fatalf("%q: request %d was answered %d", header, i, got)
			}
			<-ended
		}
		if s := h.Stats(); s.Forwarded["accepted"] != 5 || s.Requests["counted"] != 5 {
			t.Errorf("%q: %v, %v", header, s.Forwarded, s.Requests)
		}
	}
}

// TestUpstream_LateAndEarlyResponses also covers a response that arrives before the upstream has read the
// complete request.
func TestUpstream_LateAndEarlyResponses(t *testing.T) {
	to := newCollector(t, false, func(http.ResponseWriter, int) { time.Sleep(40 * time.Millisecond) })
	h := newHarness(t, forwardTo(t, to.url()))
	conn := h.dial()
	from := bufio.NewReader(conn)
	for i := range 3 {
		_, _ = io.WriteString(conn, text("/v1/traces", mediaProtobuf, exported("shop", 100*i, 5, 1)))
		if got := statusOf(t, from); got != http.StatusOK {
			t.Errorf("answered %d", got)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			from := bufio.NewReader(c)
			if _, err := http.ReadRequest(from); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
			}
			_, _ = io.Copy(io.Discard, from)
		}
	}()
	early := newHarness(t, forwardTo(t, "http://"+listener.Addr().String()))
	conn = early.dial()
	_, _ = io.WriteString(conn, text("/v1/traces", mediaProtobuf, bytes.Repeat([]byte("x"), 1<<20-1)))
	if got := statusOf(t, bufio.NewReader(conn)); got != http.StatusRequestEntityTooLarge {
		t.Errorf("answered %d", got)
	}
}
