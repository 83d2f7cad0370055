package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/destination"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// received is a request to the upstream.
type received struct {
	path   string
	header http.Header
	body   []byte
}

// collector is an upstream that records its requests and responds with answer.
type collector struct {
	*http.Server
	listener net.Listener
	isGRPC   bool

	mu     sync.Mutex
	got    []received
	answer func(w http.ResponseWriter, n int) // writes the response to the n-th request
}

func newCollector(t testing.TB, isGRPC bool, answer func(w http.ResponseWriter, n int)) *collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{listener: listener, isGRPC: isGRPC, answer: answer}
	speaks := &http.Protocols{}
	speaks.SetHTTP1(!isGRPC)
	speaks.SetUnencryptedHTTP2(isGRPC)
	c.Server = &http.Server{Handler: http.HandlerFunc(c.serve), Protocols: speaks}
	go func() { _ = c.Serve(listener) }()
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *collector) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	c.got = append(c.got, received{r.URL.Path, r.Header.Clone(), body})
	n := len(c.got)
	c.mu.Unlock()
	if c.answer != nil {
		c.answer(w, n)
	} else if c.isGRPC {
		_ = successReply().writeGRPC(w, false)
	}
}

func (c *collector) last() received {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) == 0 {
		return received{}
	}
	return c.got[len(c.got)-1]
}

func (c *collector) url() string {
	if c.isGRPC {
		return "grpc://" + c.listener.Addr().String()
	}
	return "http://" + c.listener.Addr().String()
}

func forwardTo(t testing.TB, url string) func(*Config, *aggregate.Config) {
	t.Helper()
	to, err := ParseCollector(url)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config, _ *aggregate.Config) { c.Forward = to }
}

// inJSONText is an OTLP/JSON request with one span.
const inJSONText = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"from JSON","kind":2,"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000001000"}]}]}]}`

// TestForward_BytesUnchanged checks that requests are forwarded unchanged in the upstream's protocol, with the counted
// marker if they are counted, and that the SDK gets the upstream's response.
func TestForward_BytesUnchanged(t *testing.T) {
	for _, isGRPC := range []bool{false, true} {
		to := newCollector(t, isGRPC, nil)
		h := newHarness(t, forwardTo(t, to.url()))
		plain, streams := h.client(false), h.client(true)
		good, nonsense := exported("shop", 0, 5, 1), []byte("nonsense")
		for name, c := range map[string]struct {
			signal   signal
			grpc     bool
			message  []byte
			isPacked bool
			marked   bool
		}{
			"traces":               {signalTraces, false, good, false, true},
			"traces in gzip":       {signalTraces, false, packed(good), true, true},
			"traces by gRPC":       {signalTraces, true, good, false, true},
			"gzip by gRPC":         {signalTraces, true, packed(good), true, true},
			"nonsense":             {signalTraces, false, nonsense, false, false},
			"nonsense by gRPC":     {signalTraces, true, nonsense, false, false},
			"metrics":              {signalMetrics, false, nonsense, false, false},
			"logs in gzip by gRPC": {signalLogs, true, packed(nonsense), true, false},
		} {
			header := []string{"X-Api-Key", "k", "Connection", "keep-alive"}
			var a answered
			if c.grpc {
				if c.isPacked {
					header = append(header, headerGRPCEncoding, "gzip")
				}
				a = send(t, streams, http.MethodPost, signals[c.signal].grpcPath,
					bytes.NewReader(framed(c.message, c.isPacked)), append(header[:2:2],
						append(header[4:], "Content-Type", mediaGRPC)...)...)
			} else {
				if c.isPacked {
					header = append(header, "Content-Encoding", "gzip")
				}
				a = send(t, plain, http.MethodPost, signals[c.signal].httpPath, bytes.NewReader(c.message),
					append(header, "Content-Type", mediaProtobuf)...)
			}
			if a.status != http.StatusOK || c.grpc && a.grpc != "0" {
				t.Errorf("%s, to gRPC %v: answered %+v", name, isGRPC, a)
			}
			got := to.last()
			message, path, encoding, media := c.message, signals[c.signal].httpPath, got.header.Get("Content-Encoding"), mediaProtobuf
			if isGRPC {
				message, path, encoding, media = framed(c.message,
					c.isPacked), signals[c.signal].grpcPath, got.header.Get(headerGRPCEncoding), mediaGRPC
			}
			if !bytes.Equal(got.body, message) || got.path != path || (encoding == "gzip") != c.isPacked ||
				got.header.Get("Content-Type") != media ||
				got.header.Get("X-Api-Key") != "k" ||
				(got.header.Get(headerComputedStats) == "yes") != c.marked {
				t.Errorf("%s, to gRPC %v: %s got %d bytes with %v", name, isGRPC, got.path, len(got.body),
					got.header)
			}
		}
		if a := send(t, plain, http.MethodPost, "/v1/traces", bytes.NewReader([]byte(inJSONText)),
			"Content-Type", mediaJSON); a.status != http.StatusOK {
			t.Errorf("JSON to gRPC %v: answered %+v", isGRPC, a)
		}
		if got := to.last(); isGRPC == (string(got.body) == inJSONText) ||
			got.header.Get(headerComputedStats) != "yes" {
			t.Errorf("JSON to gRPC %v: got %q with %v", isGRPC, got.body, got.header)
		}
		want := uint64(receiver.OutcomeAccepted)
		if a := send(t, plain, http.MethodPost, "/v1/logs", bytes.NewReader([]byte("{}")), "Content-Type",
			mediaJSON); isGRPC != (a.status == http.StatusUnsupportedMediaType) {
			t.Errorf("logs in JSON to gRPC %v: answered %+v", isGRPC, a)
		} else if isGRPC {
			want = 1
		}
		if got := h.Stats().Forwarded; got["incompatible"] != want || got["accepted"] != 10-want {
			t.Errorf("to gRPC %v: %v", isGRPC, got)
		}
		h.stop()
		if h.rows["from JSON"] != 1 {
			t.Errorf("to gRPC %v: counted %v", isGRPC, h.rows)
		}
	}
}

// TestForward_UpstreamResponseReturned covers every pair of protocols of the upstream and the SDK.
func TestForward_UpstreamResponseReturned(t *testing.T) {
	partial := nested(nil, 1, nested([]byte{8, 3}, 2, []byte("too old")))
	for name, c := range map[string]struct {
		answer    *reply
		http      int
		grpc      string
		message   string // gRPC message
		retry     string // value of the Retry-After header
		isCounted bool   // whether the spans are counted again when the SDK retries
	}{
		"accepted":    {successReply(), 200, "0", "", "", true},
		"in part":     {&reply{responseBody: partial}, 200, "0", "", "", true},
		"refused":     {errorReply(otlpanswer.InvalidArgument, "no"), 400, "3", "no", "", false},
		"not allowed": {errorReply(otlpanswer.PermissionDenied, "no"), 403, "7", "no", "", false},
		"busy": {&reply{Status: otlpanswer.Status{
			Code: otlpanswer.Unavailable, Message: "busy",
			Retry: 7 * time.Second,
		}}, 503, "14", "busy", "7", false},
	} {
		for _, isGRPC := range []bool{false, true} {
			to := newCollector(t, isGRPC, func(w http.ResponseWriter, _ int) {
				speaks := encodingProtobuf
				if isGRPC {
					speaks = encodingGRPC
				}
				_ = c.answer.write(w, speaks, signalTraces)
			})
			h := newHarness(t, forwardTo(t, to.url()))
			plain, streams := h.client(false), h.client(true)
			a := post(t, plain, exported("shop", 0, 1, 1))
			if a.status != c.http || a.header.Get("Retry-After") != c.retry || c.http == 200 &&
				!bytes.Equal(a.body, c.answer.responseBody) ||
				c.http != 200 && statusIn(a) != c.answer.Code {
				t.Errorf("%s, of gRPC %v: answered %+v", name, isGRPC, a)
			}
			a = postGRPC(t, streams, framed(exported("shop", 10, 1, 1), false))
			if a.grpc != c.grpc || a.message != c.message || c.grpc == "0" &&
				!bytes.Equal(a.body, framed(c.answer.responseBody, false)) ||
				c.retry != "" && retryIn(a.header.Get(headerGRPCDetails)) != c.answer.Retry {
				t.Errorf("%s, of gRPC %v: gRPC answered %+v", name, isGRPC, a)
			}
			a = send(t, plain, http.MethodPost, "/v1/traces", bytes.NewReader([]byte(inJSONText)),
				"Content-Type", mediaJSON)
			if name == "in part" && isGRPC &&
				string(a.body) != `{"partialSuccess":{"errorMessage":"too old","rejectedSpans":"3"}}` ||
				a.status != c.http {
				t.Errorf("%s, of gRPC %v: JSON answered %+v", name, isGRPC, a)
			}
		}
	}
}

// TestDedup_RetryAfterRefusal checks that a request that an SDK retries after an error is counted once, even if the SDK
// compresses it again for each attempt, like OpenTelemetry's Python SDK.
func TestDedup_RetryAfterRefusal(t *testing.T) {
	for name, answer := range map[string]*reply{
		"503": {httpStatus: 503}, "500": {httpStatus: 500}, "408": {httpStatus: 408}, "429": {httpStatus: 429}, "307": {httpStatus: 307},
		"unavailable": retryReply("busy"), "exhausted": errorReply(otlpanswer.ResourceExhausted, "no"),
		"internal": errorReply(otlpanswer.Internal, "no"), "unknown": errorReply(otlpanswer.Unknown, "no"),
	} {
		to := newCollector(t, answer.httpStatus == 0, func(w http.ResponseWriter, n int) {
			switch {
			case answer.httpStatus == 0 && n%3 == 0:
				_ = successReply().writeGRPC(w, false)
			case answer.httpStatus == 0:
				_ = answer.writeGRPC(w, false)
			case n%3 != 0:
				w.WriteHeader(answer.httpStatus)
			}
		})
		h := newHarness(t, forwardTo(t, to.url()))
		for i := range 4 {
			client := h.client(answer.httpStatus == 0)
			body := exported("shop", 100*i, 10, 1)
			for try := range 3 {
				a := postPacked(t, client, packedAt(body, time.Unix(int64(try), 0)), answer.httpStatus == 0)
				if isTaken := a.status == 200 && (answer.httpStatus != 0 || a.grpc == "0"); isTaken != (try == 2) {
					t.Errorf("%s: try %d is answered %+v", name, try, a)
				}
				if to.last().header.Get(headerComputedStats) != "yes" {
					t.Errorf("%s: try %d is not marked", name, try)
				}
			}
		}
		h.stop()
		requests := h.Stats().Requests
		if h.rows["name 0"] != 40 || requests["counted"] != 4 || requests["duplicate"] != 8 {
			t.Errorf("%s: counted %v, requests %v", name, h.rows, requests)
		}
	}
}

// packedAt compresses a message with gzip, with a time in the gzip header.
func packedAt(message []byte, at time.Time) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.ModTime = at
	_, _ = w.Write(message)
	_ = w.Close()
	return b.Bytes()
}

func postPacked(t testing.TB, client *http.Client, message []byte, isGRPC bool) answered {
	t.Helper()
	if isGRPC {
		return postGRPC(t, client, framed(message, true), headerGRPCEncoding, "gzip")
	}
	return post(t, client, message, "Content-Encoding", "gzip")
}

// TestUpstream_UnavailableUntilTimeout checks that a request waits for an unavailable upstream until its timeout, that the
// SDK is then asked to retry, and that the retried request is counted once.
func TestUpstream_UnavailableUntilTimeout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	to := forwardTo(t, "unix://"+path)
	h := newHarness(t, func(c *Config, a *aggregate.Config) { to(c, a); c.Buffer = time.Minute })
	answers := make(chan answered, 1)
	body := exported("shop", 0, 10, 1)
	go func() {
		a, _ := try(h.client(false), http.MethodPost, "/v1/traces", bytes.NewReader(body), "Content-Type",
			mediaProtobuf)
		answers <- a
	}()
	eventually.True(t, "a request waits", func() bool { return h.Stats().Waiting == 1 })
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	back := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = back.Serve(listener) }()
	defer back.Close()
	if a := <-answers; a.status != http.StatusOK {
		t.Errorf("answered %+v", a)
	}
	h.stop()

	never := forwardTo(t, "unix://"+filepath.Join(t.TempDir(), "never"))
	h = newHarness(t, func(c *Config, a *aggregate.Config) { never(c, a); c.Buffer = 0 })
	for range 2 {
		if a := post(t, h.client(false), body); a.status != http.StatusServiceUnavailable ||
			a.header.Get("Retry-After") == "" {
			t.Errorf("answered %+v", a)
		}
		if a := postGRPC(t, h.client(true), framed(body, false)); a.grpc != "14" {
			t.Errorf("answered %+v", a)
		}
	}
	h.stop()
	if h.rows["name 0"] != 10 || h.Stats().Forwarded["unreachable"] != 4 {
		t.Errorf("counted %v, forwarded %v", h.rows, h.Stats().Forwarded)
	}
}

// TestRequest_CanceledReleasesMemory checks that a canceled request releases its memory and its upstream
// connection.
func TestRequest_CanceledReleasesMemory(t *testing.T) {
	release := make(chan struct{})
	to := newCollector(t, false, func(http.ResponseWriter, int) { <-release })
	defer close(release)
	h := newHarness(t, forwardTo(t, to.url()))
	for i, isHTTP2 := range []bool{false, true} {
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/traces",
			bytes.NewReader(exported("shop", 100*i, 10, 1)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", mediaProtobuf)
		ended := make(chan error, 1)
		go func() {
			_, err := h.client(isHTTP2).Do(r)
			ended <- err
		}()
		eventually.True(t, "the destination has it", func() bool {
			to.mu.Lock()
			defer to.mu.Unlock()
			return len(to.got) == i+1
		})
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		eventually.True(t, "nothing is held", func() bool {
			return h.Stats().Forwarded["client_gone"] == uint64(i+1) && h.Stats().BufferedBytes == 0
		})
	}
}

// TestStop_LosesNoSpan stops the server while requests are in flight on connections of every kind. Every request
// with a successful response has been accepted by the upstream, and the statistics include every counted span.
func TestStop_LosesNoSpan(t *testing.T) {
	to := newCollector(t, false, nil)
	h := newHarness(t, forwardTo(t, to.url()))
	var sending sync.WaitGroup
	var mu sync.Mutex
	answers, began := 0, make(chan struct{}, 1000)
	for i := range 6 {
		client := h.client(i%2 == 0)
		sending.Go(func() {
			for n := 0; ; n++ {
				a, err := try(client, http.MethodPost, "/v1/traces",
					bytes.NewReader(exported("shop", i*1_000_000+n*100, 10,
						1)), "Content-Type", mediaProtobuf)
				if err != nil || a.status != http.StatusOK {
					return // the server is shutting down
				}
				mu.Lock()
				answers++
				mu.Unlock()
				select {
				case began <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 50 {
		<-began
	}
	h.stop()
	sending.Wait()
	to.mu.Lock()
	defer to.mu.Unlock()
	counted := h.Stats().Requests["counted"]
	if h.rows["name 0"] != 10*counted || int(counted) < answers || len(to.got) < answers {
		t.Errorf("%d answers, %d requests counted with %v, %d forwarded", answers, counted, h.rows,
			len(to.got))
	}
}

// TestAccounting_UpstreamFaults forwards to upstreams that accept, refuse, reset and send invalid responses in turn.
// The SDKs retry until they get a final response. Every span is counted once.
func TestAccounting_UpstreamFaults(t *testing.T) {
	for _, isGRPC := range []bool{false, true} {
		to := newCollector(t, isGRPC, func(w http.ResponseWriter, n int) {
			switch n * 7919 % 5 {
			case 0:
				panic(http.ErrAbortHandler)
			case 1:
				w.WriteHeader(http.StatusBadGateway)
			case 2:
				w.Header().Set(headerGRPCStatus, "14")
				w.Header().Set("Content-Type", mediaGRPC)
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, "nonsense"+strconv.Itoa(n))
			default:
				if isGRPC {
					_ = successReply().writeGRPC(w, false)
				}
			}
		})
		h := newHarness(t, forwardTo(t, to.url()))
		var sending sync.WaitGroup
		const clients, requests, spans = 4, 20, 10
		for i := range clients {
			client := h.client(i%2 == 0)
			sending.Go(func() {
				for n := range requests {
					body := exported("shop", i*1_000_000+n*100, spans, 1)
					for isDone := false; !isDone; {
						if i%2 == 0 {
							a := postGRPC(t, client, framed(body, false))
							// code 2 is the final response for an invalid response of the upstream
							isDone = a.grpc == "0" || a.grpc == "2"
						} else {
							a := post(t, client, body)
							isDone = a.status == http.StatusOK || a.status == http.StatusInternalServerError
						}
					}
				}
			})
		}
		sending.Wait()
		h.stop()
		if want := uint64(clients * requests * spans); h.rows["name 0"] != want {
			t.Errorf("to gRPC %v: counted %v, want %d; %v", isGRPC, h.rows, want, fmt.Sprint(h.Stats()))
		}
	}
}

// TestUpstream_ResponseTooLong checks that the receiver reads only a limited part of a response that is too long, and that
// the SDK gets its status.
func TestUpstream_ResponseTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		isGRPC   bool
		status   int // status of the upstream
		bytes    int
		http     int // status of the response to the SDK
		outcome  receiver.ForwardOutcome
		speaking string
	}{
		"accepted":            {false, 200, destination.MaxAnswer + 1, 200, receiver.OutcomeAccepted, mediaProtobuf},
		"accepted, in JSON":   {false, 200, destination.MaxAnswer + 1, 200, receiver.OutcomeAccepted, mediaJSON},
		"refused":             {false, 400, destination.MaxAnswer + 1, 400, receiver.OutcomeRefused, mediaProtobuf},
		"accepted, over gRPC": {true, 200, destination.MaxAnswer + 1, 200, receiver.OutcomeAccepted, mediaProtobuf},
		"endless, by gRPC":    {true, 200, 32 * destination.MaxAnswer, 503, receiver.OutcomeUnreachable, mediaProtobuf},
	} {
		to := newCollector(t, c.isGRPC, func(w http.ResponseWriter, _ int) {
			w.Header().Set("Trailer", headerGRPCStatus)
			w.WriteHeader(c.status)
			for range c.bytes / 1024 {
				_, _ = w.Write(make([]byte, 1024))
			}
			_, _ = w.Write(make([]byte, 1))
			w.Header().Set(headerGRPCStatus, "0")
		})
		h := newHarness(t, forwardTo(t, to.url()))
		body := exported("shop", 0, 1, 1)
		if c.speaking == mediaJSON {
			body = []byte(inJSONText)
		}
		a := send(t, h.client(false), http.MethodPost, "/v1/traces", bytes.NewReader(body), "Content-Type",
			c.speaking)
		if a.status != c.http || h.Stats().Forwarded[c.outcome.String()] != 1 || len(a.body) > 1024 ||
			c.speaking == mediaJSON && string(a.body) != "{}" {
			t.Errorf("%s: answered %d with %q, %v", name, a.status, a.body, h.Stats().Forwarded)
		}
	}
}

// TestUpstream_WebPageIsNoSuccess checks that a web page of the upstream does not count as success, and that an SDK with
// another encoding gets an error.
func TestUpstream_WebPageIsNoSuccess(t *testing.T) {
	to := newCollector(t, false, func(w http.ResponseWriter, _ int) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>log in</html>"))
	})
	h := newHarness(t, forwardTo(t, to.url()))
	body := exported("shop", 0, 1, 1)
	if a := post(t, h.client(false), body); a.status != 200 || string(a.body) != "<html>log in</html>" {
		t.Errorf("an SDK that speaks as it is answered %+v", a)
	}
	a := postGRPC(t, h.client(true), framed(body, false))
	if a.grpc != "2" || len(a.body) != 0 || !strings.Contains(a.message, "--otlp-forward") {
		t.Errorf("an SDK that speaks gRPC is answered %+v", a)
	}
	if got := h.Stats().Forwarded; got["refused"] != 2 || got["accepted"] != 0 {
		t.Errorf("%v", got)
	}
}

// TestUpstream_LongWebPageIsNoSuccess checks that an SDK gets an error in place of a page that is too long to be passed on.
func TestUpstream_LongWebPageIsNoSuccess(t *testing.T) {
	to := newCollector(t, false, func(w http.ResponseWriter, _ int) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(strings.Repeat("<p>log in</p>", 20_000)))
	})
	h := newHarness(t, forwardTo(t, to.url()))
	if a := post(t, h.client(false), exported("shop", 0, 1, 1)); a.status < 400 {
		t.Errorf("the SDK is answered %d", a.status)
	}
}

// TestJSON_ForwardedOverGRPC checks that every valid JSON request is forwarded over gRPC.
func TestJSON_ForwardedOverGRPC(t *testing.T) {
	to := newCollector(t, true, nil)
	h := newHarness(t, forwardTo(t, to.url()))
	for name, c := range map[string]struct {
		body   string
		marked string
		status int
	}{
		"counted here":      {inJSONText, "", 200},
		"counted elsewhere": {inJSONText, "yes", 200},
		"empty":             {"{}", "", 200},
		"without spans":     {`{"resourceSpans":[]}`, "", 200},
		"no request":        {`{"resourceSpans":7}`, "", 415},
	} {
		a := send(t, h.client(false), http.MethodPost, "/v1/traces", strings.NewReader(c.body),
			"Content-Type", mediaJSON, headerComputedStats, c.marked)
		if a.status != c.status {
			t.Errorf("%s: answered %+v", name, a)
		}
		if last := to.last(); c.status == 200 &&
			(last.path != signals[signalTraces].grpcPath ||
				c.body == inJSONText != (len(last.body) > prefixLen)) {
			t.Errorf("%s: %q came with %d bytes", name, last.path, len(last.body))
		}
	}
	if got := h.Stats().Requests; got["computed_by_client"] != 1 || got["counted"]+got["duplicate"] != 3 {
		t.Errorf("%v", got)
	}
}

// TestBody_DecompressionBombIsRefused checks that a message that exceeds the body limit after decompression is refused, even if
// there is an upstream.
func TestBody_DecompressionBombIsRefused(t *testing.T) {
	to := newCollector(t, false, nil)
	h := newHarness(t, forwardTo(t, to.url()))
	if a := post(t, h.client(false), packed(make([]byte, 8<<20)), "Content-Encoding",
		"gzip"); a.status != http.StatusRequestEntityTooLarge || to.last().path != "" {
		t.Errorf("answered %+v, the destination got %q", a, to.last().path)
	}
}
