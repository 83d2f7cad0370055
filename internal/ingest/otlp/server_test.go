package otlp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// TestSpans_CountedInEachEncoding covers all encodings, with new and with reused connections.
func TestSpans_CountedInEachEncoding(t *testing.T) {
	h := newHarness(t, nil)
	plain, streams := h.client(false), h.client(true)
	want := map[string]uint64{}
	for i := range 20 {
		body := exported("shop", 1000*i, 30, 3)
		for _, a := range []answered{
			post(t, plain, body),
			post(t, plain, packed(exported("shop", 1000*i+100, 30, 3)), "Content-Encoding", "gzip"),
			post(t, streams, exported("cart", 1000*i+200, 30, 3), "Content-Type",
				"application/x-protobuf; charset=utf-8"),
		} {
			if a.status != http.StatusOK || len(a.body) != 0 ||
				a.header.Get("Content-Type") != mediaProtobuf {
				t.Fatalf("answered %+v", a)
			}
		}
		for _, a := range []answered{
			postGRPC(t, streams, framed(exported("shop", 1000*i+300, 30, 3), false)),
			postGRPC(t, streams, framed(packed(exported("shop", 1000*i+400, 30, 3)), true),
				headerGRPCEncoding, "gzip"),
			postGRPC(t, streams, framed(exported("shop", 1000*i+500, 30, 3), false), headerGRPCEncoding,
				"gzip", "Content-Type", mediaGRPC+"+proto"),
		} {
			if a.status != http.StatusOK || a.grpc != "0" || !slices.Equal(a.body, make([]byte, prefixLen)) {
				t.Fatalf("answered %+v", a)
			}
		}
		for n := range 3 {
			want[fmt.Sprint("name ", n)] += 60
		}
	}
	h.stop()
	for name, spans := range want {
		if h.rows[name] != spans {
			t.Errorf("%q: %d spans, want %d", name, h.rows[name], spans)
		}
	}
	if got := h.Stats().Requests["counted"]; got != 120 {
		t.Errorf("%d requests were counted, want 120", got)
	}
}

// TestRefusal_FollowsSpecification checks that refusals follow the specification, in the encoding of the sender.
func TestRefusal_FollowsSpecification(t *testing.T) {
	h := newHarness(t, func(c *Config, _ *aggregate.Config) { c.MaxBody = bodies.FirstBuffer })
	plain, streams := h.client(false), h.client(true)
	bomb := packed(make([]byte, 8<<20))
	good := exported("shop", 0, 1, 1)
	for name, test := range map[string]struct {
		client       *http.Client
		method, path string
		body         []byte
		header       []string
		status       int
		grpc         string          // gRPC status; it is in the trailers
		code         otlpanswer.Code // code in the body
		result       Result
	}{
		"no such path":   {client: plain, path: "/v1/profiles", body: good, status: 404, code: 12},
		"the old path":   {client: plain, path: "/v1/trace", body: good, status: 404, code: 12},
		"another method": {client: plain, method: http.MethodGet, status: 405, code: 12},
		"another type": {
			client: plain, header: []string{"Content-Type", "text/plain"}, body: good,
			status: 415, code: 12,
		},
		"no type": {
			client: plain, header: []string{"Content-Type", ""}, body: good, status: 415,
			code: 12,
		},
		"another compression": {
			client: plain, header: []string{"Content-Encoding", "br"}, body: good,
			status: 415, code: 12,
		},
		"gRPC's type": {
			client: plain, header: []string{"Content-Type", mediaGRPC}, body: good,
			status: 415, code: 12,
		},
		"nothing to read": {
			client: plain, body: []byte("nonsense"), status: 400, code: 3,
			result: ResultUnparsable,
		},
		"no gzip": {
			client: plain, header: []string{"Content-Encoding", "gzip"}, body: good,
			status: 400, code: 3, result: ResultUnparsable,
		},
		"half a gzip": {
			client: plain, header: []string{"Content-Encoding", "gzip"},
			body: packed(good)[:20], status: 400, code: 3, result: ResultUnparsable,
		},
		"a bomb": {
			client: plain, header: []string{"Content-Encoding", "gzip"}, body: bomb,
			status: 413, code: 8, result: ResultTooLarge,
		},
		"too large": {
			client: plain, body: make([]byte, bodies.FirstBuffer+1), status: 413, code: 8,
			result: ResultTooLarge,
		},

		"a service that is none": {
			client: streams, path: "/opentelemetry.proto.collector.x/Export",
			body: framed(good, false), grpc: "12",
		},
		"another compression's name": {
			client: streams, header: []string{headerGRPCEncoding, "br"},
			body: framed(good, true), grpc: "12",
		},
		"no name of one": {
			client: streams, body: framed(packed(good), true), grpc: "13",
			result: ResultUnparsable,
		},
		"HEAD by gRPC": {client: streams, method: http.MethodHead, grpc: "12"},
		"JSON by gRPC": {
			client: streams, header: []string{"Content-Type", mediaGRPC + "+json"},
			body: framed([]byte("{}"), false), grpc: "12",
		},
		"no prefix": {
			client: streams, body: []byte{0, 0, 0}, grpc: "3",
			result: ResultUnparsable,
		},
		"a prefix too long": {
			client: streams, body: framed(good, false)[:20], grpc: "3",
			result: ResultUnparsable,
		},
		"two messages": {
			client: streams,
			body:   append(framed(good, false), framed(good, false)...), grpc: "3", result: ResultUnparsable,
		},
		"another flag": {
			client: streams, body: append([]byte{2}, framed(good, false)[1:]...),
			grpc: "3", result: ResultUnparsable,
		},
		"nonsense by gRPC": {
			client: streams, body: framed([]byte("nonsense"), false), grpc: "3",
			result: ResultUnparsable,
		},
		"a bomb by gRPC": {
			client: streams, header: []string{headerGRPCEncoding, "gzip"},
			body: framed(bomb, true), grpc: "8", result: ResultTooLarge,
		},
		"too large by gRPC": {
			client: streams,
			body:   framed(make([]byte, bodies.FirstBuffer+1), false), grpc: "8", result: ResultTooLarge,
		},
	} {
		if test.result == ResultCounted {
			test.result = ResultRefused
		}
		before := h.Stats().Requests[resultNames[test.result]]
		method, path := test.method, test.path
		if method == "" {
			method = http.MethodPost
		}
		if path == "" && test.grpc != "" {
			path = signals[signalTraces].grpcPath
		} else if path == "" {
			path = signals[signalTraces].httpPath
		}
		header := []string{"Content-Type", mediaProtobuf}
		if test.grpc != "" {
			header = []string{"Content-Type", mediaGRPC, "Te", "trailers"}
		}
		a := send(t, test.client, method, path, bytes.NewReader(test.body), append(header, test.header...)...)
		if test.grpc != "" {
			if a.status != http.StatusOK || a.grpc != test.grpc || a.message == "" ||
				a.header.Get(headerGRPCDetails) == "" || len(a.body) != 0 {
				t.Errorf("%s: answered %+v", name, a)
			}
		} else if a.status != test.status || statusIn(a) != test.code || a.header.Get("Retry-After") != "" {
			t.Errorf("%s: answered %+v with code %d", name, a, statusIn(a))
		}
		if got := h.Stats().Requests[resultNames[test.result]]; got != before+1 {
			t.Errorf("%s: %d requests are %s, want one more than %d", name, got, resultNames[test.result],
				before)
		}
	}
	if a := send(t, plain, http.MethodGet, "/v1/traces", nil); a.header.Get("Allow") != http.MethodPost {
		t.Errorf("another method is answered with %v", a.header)
	}
	h.stop()
	if stats := h.admit.Stats(); stats.Received != 0 {
		t.Errorf("%d spans were received", stats.Received)
	}
}

// statusIn returns the code of the status in a protobuf or JSON body.
func statusIn(a answered) (c otlpanswer.Code) {
	if a.header.Get("Content-Type") == mediaJSON {
		_, text, _ := strings.Cut(string(a.body), `"code":`)
		_, _ = fmt.Sscan(text, &c)
		return c
	}
	return otlpanswer.ReadStatus(a.body).Code
}

// TestConnections_ManyAtATime sends over connections of both HTTP versions, with several streams each, at the same time.
func TestConnections_ManyAtATime(t *testing.T) {
	h := newHarness(t, nil)
	const clients, requests, spans = 8, 25, 40
	var sending sync.WaitGroup
	for i := range clients {
		client := h.client(i%2 == 0)
		for stream := range 2 {
			sending.Go(func() {
				for n := range requests {
					body := exported("shop", i*1_000_000+stream*100_000+n*100, spans, 5)
					if i%2 == 0 {
						if a := postGRPC(t, client, framed(body, false)); a.grpc != "0" {
							t.Errorf("answered %+v", a)
						}
					} else if a := post(t, client, body); a.status != http.StatusOK {
						t.Errorf("answered %+v", a)
					}
				}
			})
		}
	}
	sending.Wait()
	h.stop()
	total := uint64(0)
	for _, n := range h.rows {
		total += n
	}
	if want := uint64(clients * 2 * requests * spans); total != want {
		t.Errorf("%d spans were counted, want %d", total, want)
	}
}

// TestDedup_RetryIsCountedOnce includes retries over another protocol and with another compression.
func TestDedup_RetryIsCountedOnce(t *testing.T) {
	h := newHarness(t, nil)
	body := exported("shop", 0, 7, 1)
	plain, streams := h.client(false), h.client(true)
	for range 2 {
		if a := post(t, plain, body); a.status != http.StatusOK {
			t.Fatalf("answered %+v", a)
		}
		if a := post(t, plain, packed(body), "Content-Encoding", "gzip"); a.status != http.StatusOK {
			t.Fatalf("answered %+v", a)
		}
		if a := postGRPC(t, streams, framed(body, false)); a.grpc != "0" {
			t.Fatalf("answered %+v", a)
		}
	}
	h.stop()
	if h.rows["name 0"] != 7 || h.Stats().Requests["duplicate"] != 5 {
		t.Errorf("counted %v, requests %v", h.rows, h.Stats().Requests)
	}
}

// TestHTTP10_WithoutLengthIsRefused checks that an HTTP/1.0 request without a length is refused. It would look like
// an empty request, and its spans would be lost.
func TestHTTP10_WithoutLengthIsRefused(t *testing.T) {
	h := newHarness(t, nil)
	body := exported("shop", 0, 3, 1)
	for length, want := range map[string]int{
		"": 400, "Content-Length: " + strconv.Itoa(len(body)) + "\r\n": 200,
	} {
		c := h.dial()
		head := "POST /v1/traces HTTP/1.0\r\nContent-Type: " + mediaProtobuf + "\r\n" + length + "\r\n"
		if _, err := io.WriteString(c, head+string(body)); err != nil {
			t.Fatal(err)
		}
		if status := statusOf(t, bufio.NewReader(c)); status != want {
			t.Errorf("with %q: answered %d, want %d", length, status, want)
		}
	}
	h.stop()
	if h.rows["name 0"] != 3 {
		t.Errorf("counted %v", h.rows)
	}
}

// TestRefusal_ReachesSenderThatKeepsWriting checks that a sender that writes its complete body before it reads gets the refusal.
func TestRefusal_ReachesSenderThatKeepsWriting(t *testing.T) {
	h := newHarness(t, func(c *Config, _ *aggregate.Config) { c.Addr = "127.0.0.1:0" })
	for path, want := range map[string]int{signals[signalTraces].httpPath: 413, "/v1/profiles": 404} {
		for network, address := range map[string]string{"tcp": h.Addr(), "unix": h.path} {
			c, err := net.Dial(network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			body := make([]byte, 8<<20)
			head := "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: " + mediaProtobuf +
				"\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
			if _, err := c.Write(append([]byte(head), body...)); err != nil {
				t.Errorf("%s, %s: the body can't be written: %v", network, path, err)
				continue
			}
			if status := statusOf(t, bufio.NewReader(c)); status != want {
				t.Errorf("%s, %s: answered %d, want %d", network, path, status, want)
			}
		}
	}
}

// TestLog_NamesSenderOfUnparsableSpans checks that the log identifies the sender of unparsable spans by process or address,
// and by User-Agent.
func TestLog_NamesSenderOfUnparsableSpans(t *testing.T) {
	var log lines
	h := newHarness(t, func(c *Config, _ *aggregate.Config) {
		c.Addr, c.Log = "127.0.0.1:0", slog.New(slog.NewTextHandler(&log, nil))
	})
	a := post(t, h.client(false), []byte("nonsense"), "User-Agent", "an-sdk/1.0")
	if pid := "pid=" + strconv.Itoa(os.Getpid()); a.status != 400 || !log.has(pid) || !log.has("an-sdk/1.0") {
		t.Errorf("the log has %q", log.text.String())
	}
}
