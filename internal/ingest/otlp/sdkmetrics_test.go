package otlp

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/sdkmetrics"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
	"google.golang.org/protobuf/encoding/protowire"
)

// spansStarted returns a metrics request with the delta of the number of spans that an SDK has started.
func spansStarted(spans uint64) []byte {
	point := protowire.AppendFixed64(protowire.AppendTag(nil, 6, protowire.Fixed64Type), spans)
	sum := number(nested(nil, 1, point), 2, 1)
	metric := nested(nested(nil, 1, []byte("otel.sdk.span.started")), 7, sum)
	return nested(nil, 1, nested(nil, 2, nested(nil, 2, metric)))
}

// TestSDKMetrics_ReadInEachEncoding covers all encodings and compressions. The requests are forwarded unchanged.
func TestSDKMetrics_ReadInEachEncoding(t *testing.T) {
	to := newCollector(t, false, nil)
	h := newHarness(t, forwardTo(t, to.url()))
	if _, hasSums := h.SDKSums(); hasSums {
		t.Error("sums exist before the first request")
	}
	message := spansStarted(3)
	a := send(t, h.client(false), http.MethodPost, signals[signalMetrics].httpPath, bytes.NewReader(message),
		"Content-Type", mediaProtobuf)
	if a.status != http.StatusOK || !bytes.Equal(to.last().body, message) {
		t.Errorf("answered %+v, forwarded %q", a, to.last().body)
	}
	for n, c := range compressions {
		packed := c.pack(message)
		a := c.send(t, h, signalMetrics, packed)
		if !c.is(a, http.StatusOK, otlpanswer.OK) || !bytes.Equal(to.last().body, packed) {
			t.Errorf("%v: answered %+v, forwarded %q", c, a, to.last().body)
		}
		if sums, _ := h.SDKSums(); sums != (sdkmetrics.Sums{Started: 3 * uint64(n+2)}) {
			t.Errorf("%v: sums %+v", c, sums)
		}
	}
}

// TestDiscard_MetricsAndLogsWithoutUpstream sends all signals to one endpoint, as an SDK does whose only setting is
// OTEL_EXPORTER_OTLP_ENDPOINT. It gets a success for each, so it logs no error, and one log line per signal reports that
// the requests are discarded.
func TestDiscard_MetricsAndLogsWithoutUpstream(t *testing.T) {
	var log bytes.Buffer // written before the response
	h := newHarness(t, func(c *Config, _ *aggregate.Config) {
		c.MaxBody, c.Log = bodies.FirstBuffer, slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, s := range []signal{signalMetrics, signalLogs} {
		for n, c := range compressions {
			if a := c.send(t, h, s, c.pack(spansStarted(3))); !c.is(a, http.StatusOK, otlpanswer.OK) {
				t.Errorf("%v: answered %+v", c, a)
			}
			if sums, _ := h.SDKSums(); s == signalMetrics && sums != (sdkmetrics.Sums{Started: 3 * uint64(n+1)}) {
				t.Errorf("%v: sums %+v", c, sums)
			}
		}
		for media, body := range map[string]string{
			mediaJSON: "{}", mediaProtobuf: strings.Repeat("longer than a body may be", bodies.FirstBuffer),
		} {
			a := send(t, h.client(false), http.MethodPost, signals[s].httpPath, strings.NewReader(body),
				"Content-Type", media)
			if want := map[string]string{mediaJSON: "{}"}[media]; a.status != http.StatusOK ||
				string(a.body) != want {
				t.Errorf("%s in %s: answered %+v", signals[s].name, media, a)
			}
		}
	}
	each := uint64(len(compressions) + 2)
	stats := h.Stats()
	if got := stats.DiscardedSignals; got["metrics"] != each || got["logs"] != each || len(got) != 2 ||
		stats.Requests["other"] != 2*each || stats.Requests["refused"] != 0 {
		t.Errorf("discarded %v, requests %v", got, stats.Requests)
	}
	for _, name := range []string{"metrics", "logs"} {
		if strings.Count(log.String(), name+" are accepted and discarded") != 1 {
			t.Errorf("the log does not report once that %s are discarded: %s", name, log.String())
		}
	}
}

// TestSDKMetrics_UnreadableAreForwarded checks that unreadable metrics requests are forwarded and release their memory: in
// JSON, with an invalid message, with an invalid compression, and larger than a body after decompression.
func TestSDKMetrics_UnreadableAreForwarded(t *testing.T) {
	to := newCollector(t, false, nil)
	h := newHarness(t, forwardTo(t, to.url()))
	for name, c := range map[string]struct{ media, packing, body string }{
		"JSON":            {mediaJSON, "", `{"resourceMetrics":[]}`},
		"invalid message": {mediaProtobuf, "", "\x0a\xff"},
		"invalid gzip":    {mediaProtobuf, "gzip", "none"},
		"a bomb":          {mediaProtobuf, "gzip", string(packed(make([]byte, 8<<20)))},
		"a block":         {mediaProtobuf, "snappy", string(snappy.Encode(nil, make([]byte, 8<<20)))},
	} {
		a := send(t, h.client(false), http.MethodPost, signals[signalMetrics].httpPath, strings.NewReader(c.body),
			"Content-Type", c.media, "Content-Encoding", c.packing)
		if a.status != http.StatusOK || string(to.last().body) != c.body {
			t.Errorf("%s: answered %+v", name, a)
		}
	}
	h.stop()
	if sums, hasSums := h.SDKSums(); hasSums || h.Stats().BufferedBytes != 0 {
		t.Errorf("sums %+v, and %d bytes are held", sums, h.Stats().BufferedBytes)
	}
}
