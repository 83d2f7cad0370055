package otlp

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// compression is a compression as a protocol names it.
type compression struct {
	name   string
	isGRPC bool
	pack   func([]byte) []byte
}

var compressions = []compression{
	{"gzip", false, packed},
	{"gzip", true, packed},
	{"zstd", false, zstded},
	{"zstd", true, zstded},
	{"snappy", false, func(message []byte) []byte { return snappy.Encode(nil, message) }},
	{"snappy", false, snapped}, // older Collectors use it
	{"x-snappy-framed", false, snapped},
	{"snappy", true, snapped},
}

func zstded(message []byte) []byte {
	var b bytes.Buffer
	w, _ := zstd.NewWriter(&b)
	_, _ = w.Write(message)
	_ = w.Close()
	return b.Bytes()
}

func snapped(message []byte) []byte {
	var b bytes.Buffer
	w := snappy.NewBufferedWriter(&b)
	_, _ = w.Write(message)
	_ = w.Close()
	return b.Bytes()
}

// send sends an already compressed message with the name of the compression.
func (c compression) send(t testing.TB, h *harness, s signal, message []byte) answered {
	t.Helper()
	if c.isGRPC {
		return send(t, h.client(true), http.MethodPost, signals[s].grpcPath,
			bytes.NewReader(framed(message, true)),
			"Content-Type", mediaGRPC, headerGRPCEncoding, c.name)
	}
	return send(t, h.client(false), http.MethodPost, signals[s].httpPath, bytes.NewReader(message),
		"Content-Type", mediaProtobuf, "Content-Encoding", c.name)
}

func (c compression) String() string {
	return fmt.Sprintf("%s, by gRPC %v", c.name, c.isGRPC)
}

// is reports whether a response has an HTTP status, or a gRPC code.
func (c compression) is(a answered, status int, code otlpanswer.Code) bool {
	if c.isGRPC {
		return a.status == http.StatusOK && a.grpc == fmt.Sprint(code)
	}
	return a.status == status && (status == http.StatusOK || statusIn(a) == code)
}

// TestCompression_CountsAlike covers all compressions, with few and with many spans.
func TestCompression_CountsAlike(t *testing.T) {
	h := newHarness(t, nil)
	r, want := rand.New(rand.NewPCG(1, 2)), uint64(0)
	for round := range 10 {
		for n, c := range compressions {
			spans := 1 + r.IntN(1<<r.IntN(14))
			body := c.pack(exported("shop", 1_000_000*(len(compressions)*round+n), spans, 1))
			if a := c.send(t, h, signalTraces, body); !c.is(a, http.StatusOK, otlpanswer.OK) {
				t.Fatalf("%v: %d spans are answered %+v", c, spans, a)
			} else if accepted := a.header.Get(headerGRPCAccepts); c.isGRPC &&
				accepted != "gzip,zstd,snappy" {
				t.Errorf("%v: accepted encodings are listed as %q", c, accepted)
			}
			want += uint64(spans)
		}
	}
	json := zstded([]byte(inJSONText))
	if a := send(t, h.client(false), http.MethodPost, "/v1/traces", bytes.NewReader(json), "Content-Type",
		mediaJSON, "Content-Encoding", "zstd"); a.status != http.StatusOK {
		t.Errorf("JSON in zstd is answered %+v", a)
	}
	h.stop()
	if h.rows["name 0"] != want || h.rows["from JSON"] != 1 {
		t.Errorf("counted %v, want %d", h.rows, want)
	}
}

// TestCompression_InvalidIsRefused covers a message that is too large after decompression, a truncated message, and a
// message with the name of another compression.
func TestCompression_InvalidIsRefused(t *testing.T) {
	h := newHarness(t, func(c *Config, _ *aggregate.Config) { c.MaxBody = bodies.FirstBuffer })
	good, large := exported("shop", 0, 5, 1), make([]byte, 1<<20)
	for _, c := range compressions {
		if a := c.send(t, h, signalTraces, c.pack(large)); !c.is(a, http.StatusRequestEntityTooLarge,
			otlpanswer.ResourceExhausted) {
			t.Errorf("%v: a bomb is answered %+v", c, a)
		}
		for name, bad := range map[string][]byte{
			"half a message": c.pack(good)[:20], "none": good,
			"nonsense": []byte("nonsense"), "nothing": nil,
		} {
			if a := c.send(t, h, signalTraces, bad); !c.is(a, http.StatusBadRequest,
				otlpanswer.InvalidArgument) {
				t.Errorf("%v: %s is answered %+v", c, name, a)
			}
		}
	}
	if stats := h.Stats().Requests; stats["too_large"] != uint64(len(compressions)) ||
		stats["unparsable"] != uint64(4*len(compressions)) {
		t.Errorf("requests %v", stats)
	}
	for _, c := range []compression{
		{"x-snappy-framed", true, nil},
		{"lz4", true, nil},
		{"lz4", false, nil},
		{"deflate", false, nil},
		{strings.Repeat("z", 200), false, nil},
	} {
		a := c.send(t, h, signalTraces, good)
		if text := a.message +
			string(a.body); !c.is(a, http.StatusUnsupportedMediaType, otlpanswer.Unimplemented) ||
			!strings.Contains(text, "zstd") {
			t.Errorf("%v is answered %+v", c, a)
		}
	}
}

// TestCompression_ForwardedUnchanged checks that the name of the compression is translated for the upstream. The
// block format of snappy has no name in gRPC, so traces are forwarded uncompressed.
func TestCompression_ForwardedUnchanged(t *testing.T) {
	for _, isGRPC := range []bool{false, true} {
		to := newCollector(t, isGRPC, nil)
		h := newHarness(t, forwardTo(t, to.url()))
		for n, c := range compressions {
			message := exported("shop", 1000*n, 5, 1)
			came := c.pack(message)
			isBlock := c.name == "snappy" && bytes.Equal(came, snappy.Encode(nil, message))
			want, name := came, c.name
			switch {
			case isGRPC && isBlock:
				want, name = framed(message, false), ""
			case isGRPC:
				want, name = framed(came, true), strings.TrimSuffix(strings.TrimPrefix(name, "x-"), "-framed")
			case c.isGRPC && name == "snappy":
				name = "x-snappy-framed"
			}
			header := map[bool]string{false: "Content-Encoding", true: headerGRPCEncoding}[isGRPC]
			a, got := c.send(t, h, signalTraces, came), to.last()
			if !c.is(a, http.StatusOK, otlpanswer.OK) || !bytes.Equal(got.body, want) ||
				got.header.Get(header) != name {
				t.Errorf("%v, to gRPC %v: answered %+v; the forwarded request has %d bytes with %v", c, isGRPC, a,
					len(got.body), got.header)
			}
			a, got = c.send(t, h, signalLogs, came), to.last()
			if isFit := !isGRPC || !isBlock; isFit != c.is(a, http.StatusOK, otlpanswer.OK) ||
				isFit && !bytes.Equal(got.body, want) || !isFit &&
				a.status != http.StatusUnsupportedMediaType {
				t.Errorf("%v, to gRPC %v: logs are answered %+v", c, isGRPC, a)
			}
		}
		h.stop()
		if want := uint64(5 * len(compressions)); h.rows["name 0"] != want {
			t.Errorf("to gRPC %v: counted %v, want %d", isGRPC, h.rows, want)
		}
	}
}

// TestCompression_SampledIsGzip checks that sampled messages are compressed with gzip, whatever the compression of
// the received message.
func TestCompression_SampledIsGzip(t *testing.T) {
	for _, isGRPC := range []bool{false, true} {
		to := newCollector(t, isGRPC, nil)
		forward := forwardTo(t, to.url())
		h := newHarness(t, func(c *Config, a *aggregate.Config) {
			forward(c, a)
			c.MarksCounted, c.Keep = true, &sampling.Policy{Share: 1}
		})
		for n, c := range compressions {
			a, got := c.send(t, h, signalTraces, c.pack(exported("shop", 1000*n, 5, 1))), to.last()
			message, encoding := got.body, got.header.Get("Content-Encoding")
			if isGRPC {
				message, encoding = message[prefixLen:], got.header.Get(headerGRPCEncoding)
			}
			from, err := gzip.NewReader(bytes.NewReader(message))
			if err != nil || encoding != "gzip" {
				t.Fatalf("%v, to gRPC %v: %v, with %v; answered %+v", c, isGRPC, err, got.header, a)
			}
			if message, err = io.ReadAll(from); err != nil ||
				!bytes.Contains(message, []byte("_dd.stats_computed")) {
				t.Errorf("%v, to gRPC %v: %v, %q", c, isGRPC, err, message)
			}
		}
	}
}
