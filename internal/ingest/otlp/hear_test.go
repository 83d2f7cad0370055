package otlp

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/sdkmetrics"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
	"google.golang.org/protobuf/encoding/protowire"
)

// begun returns a metrics request with the delta of the number of spans that an SDK has started.
func begun(spans uint64) []byte {
	point := protowire.AppendFixed64(protowire.AppendTag(nil, 6, protowire.Fixed64Type), spans)
	sum := number(nested(nil, 1, point), 2, 1)
	metric := nested(nested(nil, 1, []byte("otel.sdk.span.started")), 7, sum)
	return nested(nil, 1, nested(nil, 2, nested(nil, 2, metric)))
}

// TestWhatSDKsSayOfThemselvesIsHeard covers all encodings and compressions. The requests are forwarded unchanged.
func TestWhatSDKsSayOfThemselvesIsHeard(t *testing.T) {
	to := newCollector(t, false, nil)
	h := newHarness(t, forwardTo(t, to.url()))
	if _, heard := h.Said(); heard {
		t.Error("something is heard before anybody spoke")
	}
	message := begun(3)
	a := send(t, h.client(false), http.MethodPost, signals[signalMetrics].http, bytes.NewReader(message),
		"Content-Type", mediaProtobuf)
	if a.status != http.StatusOK || !bytes.Equal(to.last().body, message) {
		t.Errorf("answered %+v, %q goes on", a, to.last().body)
	}
	for n, c := range compressions {
		came := c.pack(message)
		a := c.send(t, h, signalMetrics, came)
		if !c.is(a, http.StatusOK, otlpanswer.OK) || !bytes.Equal(to.last().body, came) {
			t.Errorf("%v: answered %+v, %q goes on", c, a, to.last().body)
		}
		if sums, _ := h.Said(); sums != (sdkmetrics.Sums{Started: 3 * uint64(n+2)}) {
			t.Errorf("%v: heard %+v", c, sums)
		}
	}
}

// TestMetricsThatCantBeHeardGoOn checks that unreadable metrics requests are forwarded and release their memory: in
// JSON, with an invalid message, with an invalid compression, and larger than a body after decompression.
func TestMetricsThatCantBeHeardGoOn(t *testing.T) {
	to := newCollector(t, false, nil)
	h := newHarness(t, forwardTo(t, to.url()))
	for name, c := range map[string]struct{ media, packing, body string }{
		"JSON":       {mediaJSON, "", `{"resourceMetrics":[]}`},
		"no message": {mediaProtobuf, "", "\x0a\xff"},
		"no gzip":    {mediaProtobuf, "gzip", "none"},
		"a bomb":     {mediaProtobuf, "gzip", string(packed(make([]byte, 8<<20)))},
		"a block":    {mediaProtobuf, "snappy", string(snappy.Encode(nil, make([]byte, 8<<20)))},
	} {
		a := send(t, h.client(false), http.MethodPost, signals[signalMetrics].http, strings.NewReader(c.body),
			"Content-Type", c.media, "Content-Encoding", c.packing)
		if a.status != http.StatusOK || string(to.last().body) != c.body {
			t.Errorf("%s: answered %+v", name, a)
		}
	}
	h.stop()
	if sums, heard := h.Said(); heard || h.Stats().BufferedBytes != 0 {
		t.Errorf("heard %+v, and %d bytes are held", sums, h.Stats().BufferedBytes)
	}
}
