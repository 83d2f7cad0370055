package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"
)

// connect opens a connection that is closed when ctx is done.
func connect(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, networkOf(address), address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return conn, conn.SetDeadline(time.Now().Add(30 * time.Second))
}

// addresses returns all addresses of a daemon. The method http returns those of its HTTP receivers.
func (t *target) addresses() []string { return append(t.http(), t.Spans, t.StatusAddr) }

func (t *target) http() []string {
	return []string{t.APM, t.APMAddr, t.OTLP, t.OTLPAddr, t.OTLPAddr}
}
func (t *target) sdks() []string    { return []string{t.OTLP, t.OTLPAddr} }
func (t *target) tracers() []string { return []string{t.APM, t.APMAddr} }

func anyOf(all []string) string { return all[rand.IntN(len(all))] }

// write connects, writes, and then calls then with the connection.
func write(ctx context.Context, address string, bytes []byte, then func(net.Conn) error) error {
	conn, err := connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(bytes); err != nil {
		return err
	}
	if then == nil {
		return nil
	}
	return then(conn)
}

// hold keeps a connection open for a few seconds without reading.
func hold(ctx context.Context) func(net.Conn) error {
	return func(net.Conn) error {
		pause(ctx, time.Duration(2000+rand.IntN(6000))*time.Millisecond)
		return nil
	}
}

// readAll reads until the daemon closes the connection or a timeout expires.
func readAll(conn net.Conn) error {
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err := io.Copy(io.Discard, io.LimitReader(conn, 4<<20))
	return err
}

// readStatus reads the status of a response.
func readStatus(conn net.Conn) (int, error) {
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}

// postHeader returns the header of a request with a body of the given length.
func postHeader(path, media string, length int, headers ...string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: daemon\r\nContent-Type: %s\r\n%s: 1\r\n"+
		"X-Datadog-Trace-Count: 1\r\n%sContent-Length: %d\r\n\r\n", path, media, hostileHeader,
		strings.Join(headers, ""), length)
}

// postRequest returns a request with its body.
func postRequest(path, media string, body []byte, headers ...string) []byte {
	return append(postHeader(path, media, len(body), headers...), body...)
}

const (
	gzipHeader   = "Content-Encoding: gzip\r\n"
	msgpackType  = "application/msgpack"
	protobufType = "application/x-protobuf"
	jsonType     = "application/json"
)

// sendForeignHost requests the status page with a foreign Host header, like a browser after DNS
// rebinding.
func sendForeignHost(ctx context.Context, t *target) error {
	name := anyOf([]string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:9126"})
	path := anyOf([]string{"/", "/status"})
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, name)
	return write(ctx, t.StatusAddr, request, func(conn net.Conn) error {
		if code, err := readStatus(conn); err == nil && code == http.StatusOK {
			return fmt.Errorf("%w: 200 to %s for %s", errInvalidResponse, path, name)
		}
		return nil
	})
}

// sendBodyWithoutLength sends a body without a length, which must not be treated as an empty body.
func sendBodyWithoutLength(ctx context.Context, t *target) error {
	spans := newSpans("hostile", resources, 10)
	request := fmt.Appendf(nil, "POST /v1/traces HTTP/1.0\r\nHost: daemon\r\nContent-Type: %s\r\n\r\n%s",
		protobufType, spans.protobuf())
	return write(ctx, anyOf(t.sdks()), request, func(conn net.Conn) error {
		if code, err := readStatus(conn); err == nil && code == http.StatusOK {
			return fmt.Errorf("%w: 200 to a request without a length", errInvalidResponse)
		}
		return nil
	})
}

func stayIdle(ctx context.Context, t *target) error {
	return write(ctx, anyOf(t.addresses()), nil, hold(ctx))
}

func connectAndClose(ctx context.Context, t *target) error {
	return write(ctx, anyOf(t.addresses()), nil, nil)
}

func sendPartialHeader(ctx context.Context, t *target) error {
	partial := []byte("POST /v1/traces HTTP/1.1\r\nHost: daemon\r\nConte")
	return write(ctx, anyOf(append(t.http(), t.StatusAddr)), partial, hold(ctx))
}

func pipelinePartialHeader(ctx context.Context, t *target) error {
	request := append(postRequest("/v1/traces", protobufType, nil), "POST /v1/traces HTTP/1.1\r\nHo"...)
	return write(ctx, anyOf(t.http()), request, hold(ctx))
}

func sendHeaderSlowly(ctx context.Context, t *target) error {
	return write(ctx, anyOf(t.http()), nil, func(conn net.Conn) error {
		for _, b := range postHeader("/v1/traces", protobufType, 10) {
			if _, err := conn.Write([]byte{b}); err != nil {
				return err
			}
			pause(ctx, 30*time.Millisecond)
		}
		return nil
	})
}

func sendEndlessHeader(ctx context.Context, t *target) error {
	long := []byte("POST /v1/traces HTTP/1.1\r\nHost: " + strings.Repeat("x", 1<<20))
	return write(ctx, anyOf(t.http()), long, readAll)
}

func sendLatePreface(ctx context.Context, t *target) error {
	request := append(postRequest("/v1/traces", protobufType, nil), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+
		"\x00\x00\x00\x04\x00\x00\x00\x00\x00"...)
	return write(ctx, anyOf(t.http()), request, readAll)
}

func sendMalformedRequest(ctx context.Context, t *target) error {
	requests := []string{
		"GET\r\n\r\n", "POST /v1/traces HTTP/9.9\r\n\r\n",
		"POST /v1/traces HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
		"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST /v1/traces HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
		"\x00\x01\x02", "\r\n\r\n\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "HEAD /v1/traces HTTP/1.1\r\nHost: a\r\n\r\n",
	}
	return write(ctx, anyOf(append(t.http(), t.StatusAddr)), []byte(anyOf(requests)), readAll)
}
