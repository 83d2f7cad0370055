package otlp

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// TestBody_SlowIsCutOff covers both HTTP versions, and checks that the memory of the bodies is released.
func TestBody_SlowIsCutOff(t *testing.T) {
	h := newHarness(t, func(c *Config, _ *aggregate.Config) { c.readTimeout = 50 * time.Millisecond })
	for name, client := range map[string]*http.Client{"HTTP/1.1": h.client(false), "HTTP/2": h.client(true)} {
		body, half := io.Pipe()
		go func() { _, _ = half.Write(exported("shop", 0, 1, 1)[:20]) }()
		if a := send(t, client, http.MethodPost, "/v1/traces", body, "Content-Type",
			mediaProtobuf); a.status != http.StatusRequestTimeout ||
			statusIn(a) != otlpanswer.DeadlineExceeded {
			t.Errorf("%s: answered %+v", name, a)
		}
		half.Close()
	}
	if got := h.Stats().Requests["incomplete"]; got != 2 {
		t.Errorf("%d requests are incomplete", got)
	}
	eventually.True(t, "no body is held", func() bool { return h.Stats().BufferedBytes == 0 })
}

// TestConnection_BrokenIsNotCounted checks that requests that end early at any byte are not counted, and that the
// next request is served.
func TestConnection_BrokenIsNotCounted(t *testing.T) {
	h := newHarness(t, nil)
	body := exported("shop", 0, 5, 1)
	request := fmt.Sprintf("POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		c := h.dial()
		switch n := random.IntN(len(request)); random.IntN(3) {
		case 0:
			_, _ = io.WriteString(c, request[:n])
		case 1:
			_, _ = io.WriteString(c, preface+request[:n]) // the first bytes are not valid frames
		case 2:
			_, _ = io.WriteString(c, preface[:1+n%len(preface)])
		}
		c.Close()
	}
	eventually.True(t, "no connection is left", func() bool {
		return h.Stats().Connections == 0 && h.Stats().BufferedBytes == 0
	})
	// The server may not have accepted the last connections yet, which are then too many for a moment.
	eventually.True(t, "the next request is served", func() bool {
		return post(t, h.client(false), body).status == http.StatusOK
	})
	h.stop()
	if h.rows["name 0"] != 5 {
		t.Errorf("counted %v", h.rows)
	}
}

// TestStreams_FloodIsServedInTurns sends more requests over one connection than it may have in flight. All of them
// get a response.
func TestStreams_FloodIsServedInTurns(t *testing.T) {
	h := newHarness(t, func(c *Config, _ *aggregate.Config) { c.MaxStreams = 2 })
	client := h.client(true)
	const requests = 20
	var sending sync.WaitGroup
	for i := range requests {
		sending.Go(func() {
			if a, err := try(client, http.MethodPost, signals[signalTraces].grpcPath,
				bytes.NewReader(framed(exported("shop", i*10, 3, 1), false)),
				"Content-Type", mediaGRPC); err != nil || a.grpc != "0" {
				t.Errorf("answered %+v, %v", a, err)
			}
		})
	}
	sending.Wait()
	h.stop()
	if h.rows["name 0"] != 3*requests {
		t.Errorf("counted %v", h.rows)
	}
}

// TestBody_MemoryFullIsRetryable fills the memory for bodies. The next request is refused with a retryable
// status, and the memory is released afterwards.
func TestBody_MemoryFullIsRetryable(t *testing.T) {
	h := newHarness(t, func(c *Config, _ *aggregate.Config) { c.MaxBody, c.MaxBodyBytes = 1<<20, 1<<20 })
	large := strings.Repeat("x", 700<<10)
	c := h.dial()
	fmt.Fprintf(c,
		"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: %d\r\n\r\n%s", len(large)+1, large)
	eventually.True(t, "a body is held", func() bool { return h.Stats().BufferedBytes > 700<<10 })
	body := exported("shop", 0, 9000, 1)
	if len(body) < 400<<10 {
		t.Fatalf("a body of %d bytes has room", len(body))
	}
	if a := post(t, h.client(false), body); a.status != http.StatusServiceUnavailable ||
		a.header.Get("Retry-After") != "1" || statusIn(a) != otlpanswer.Unavailable {
		t.Errorf("answered %d %v", a.status, a.header)
	}
	if a := postGRPC(t, h.client(true), framed(body, false)); a.grpc != "14" ||
		a.header.Get(headerGRPCDetails) == "" {
		t.Errorf("answered %d %v", a.status, a.header)
	}
	c.Close()
	eventually.True(t, "no body is held", func() bool { return h.Stats().BufferedBytes == 0 })
	if a := post(t, h.client(false), body); a.status != http.StatusOK {
		t.Errorf("answered %d %v", a.status, a.header)
	}
	if stats := h.Stats().Requests; stats["busy"] != 2 || stats["counted"] != 1 || stats["incomplete"] != 1 {
		t.Errorf("requests %v", stats)
	}
}

// TestConnection_OverLimit checks that a connection over the limit is refused, and that an idle connection of
// either protocol is evicted.
func TestConnection_OverLimit(t *testing.T) {
	// the test itself uses one of the connections
	h := newHarness(t, func(c *Config, _ *aggregate.Config) { c.MaxConnections = 2 })
	for i := range 6 {
		client := h.client(i%2 == 0)
		body := exported("shop", i*10, 1, 1)
		eventually.True(t, "the one before is idle and gives way", func() bool {
			a, err := try(client, http.MethodPost, "/v1/traces", bytes.NewReader(body), "Content-Type",
				mediaProtobuf)
			return err == nil && a.status == http.StatusOK
		})
	}
	var c net.Conn
	eventually.True(t, "the last one gives way", func() bool {
		c = h.dial()
		_, _ = io.WriteString(c, "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"+
			"Content-Length: 9\r\n\r\nhalf")
		for range 100 {
			if h.Stats().BufferedBytes > 0 {
				return true
			}
			time.Sleep(time.Millisecond)
		}
		return false
	})
	before := h.Stats().Refused
	refused, _ := io.ReadAll(h.dial())
	// a connection of an earlier attempt can be counted late
	if !strings.HasPrefix(string(refused), "HTTP/1.1 503 ") || h.Stats().Refused <= before {
		t.Errorf("one too many got %q, the statistics are %+v", refused, h.Stats())
	}
	c.Close()
}

// TestHeader_LineLimit checks the limit on header lines of HTTP/1.1. net/http limits only their bytes.
func TestHeader_LineLimit(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial()
	_, _ = io.WriteString(c,
		"POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+strings.Repeat("a:\r\n", 200)+"\r\n")
	if answer, _ := io.ReadAll(c); strings.Contains(string(answer), "200 OK") {
		t.Errorf("answered %q", answer)
	}
	if h.Stats().Requests["refused"] != 0 {
		t.Error("a header of too many lines became a request")
	}
}
