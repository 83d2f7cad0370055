package otlp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// answers defines the meaning of a receiver's status codes, according to the specification.
// Payloads that are not retried are lost.
var answers = post.Answers{
	http.StatusTooManyRequests:    {Outcome: export.OutcomeNotYet},
	http.StatusBadGateway:         {Outcome: export.OutcomeNotYet},
	http.StatusServiceUnavailable: {Outcome: export.OutcomeNotYet},
	http.StatusGatewayTimeout:     {Outcome: export.OutcomeNotYet},

	http.StatusUnauthorized: refused(" (set credentials in OTEL_EXPORTER_OTLP_HEADERS)"),
	http.StatusForbidden:    refused(" (check the credentials in OTEL_EXPORTER_OTLP_HEADERS)"),
	http.StatusNotFound: refused(" (most have /v1/metrics; Prometheus has /api/v1/otlp/v1/metrics" +
		", with --web.enable-otlp-receiver)"),
	http.StatusRequestEntityTooLarge: refused(" (raise the receiver's maximum request size)"),
	http.StatusUnsupportedMediaType:  refused(" (the receiver does not support http/protobuf, or gzip)"),
}

func refused(advice string) post.Meaning {
	return post.Meaning{Outcome: export.OutcomeRefused, Advice: advice}
}

// noMetrics is a request without metrics: one empty resource.
var noMetrics = []byte{fieldResourceMetrics<<3 | 2, 0}

// hint returns a common mistake that may be the reason why there is no response.
func hint(e endpoint.URL) string {
	if strings.HasSuffix(e.Address, ":4317") {
		return " (4317 is the gRPC port; the daemon sends http/protobuf, whose port is 4318)"
	}
	return ""
}

// readSuccess reads from the response to an accepted payload which part of it the receiver
// rejected.
func readSuccess(a *post.Answer, p *export.Payload, isCompressed bool) {
	switch partial := otlpanswer.ReadPartial(a.Body); {
	case partial.Rejected > 0:
		a.Err = fmt.Errorf("receiver rejected %d data points of a payload%s", partial.Rejected,
			post.Quoted(partial.Message))
		a.Rejected = maxRejectedSpans(p, partial.Rejected, isCompressed)
	case partial.Message != "":
		a.Err = fmt.Errorf("receiver accepted a payload with a warning%s", post.Quoted(partial.Message))
	}
}

// maxRejectedSpans returns the maximum number of spans in the given number of data points of a
// payload. The response does not identify the rejected points, so those with the most spans are
// assumed.
func maxRejectedSpans(p *export.Payload, points uint64, isCompressed bool) uint64 {
	if p.Spans == 0 { // running totals
		return sumOfLargest(slices.Clone(p.Undelivered), points)
	}
	request := p.Body
	if isCompressed {
		request = gunzipped(request)
	}
	return min(p.Spans, max(1, maxSpans(request, points)))
}

// maxSpans returns the maximum number of spans in the given number of data points of a request of
// deltas. Spans are counted in the points of histograms only, because the points of the calls
// metric count the same spans.
func maxSpans(request []byte, points uint64) uint64 {
	var counts []uint64
	for _, kind := range [...]protolite.Number{fieldMetricHistogram, fieldMetricExplicit} {
		for point := range protolite.Messages(
			request, fieldResourceMetrics, fieldScopeMetrics, fieldMetrics, kind, fieldPoints,
		) {
			for f := range protolite.Fields(point) {
				if f.Number == fieldPointCount {
					counts = append(counts, f.Value)
				}
			}
		}
	}
	return sumOfLargest(counts, points)
}

// sumOfLargest adds up the n largest counts. It sorts counts.
func sumOfLargest(counts []uint64, n uint64) (sum uint64) {
	slices.Sort(counts)
	slices.Reverse(counts)
	for _, count := range counts[:min(n, uint64(len(counts)))] {
		sum += count
	}
	return sum
}

// gzipped compresses a request.
func gzipped(w *gzip.Writer, request []byte) []byte {
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(request) // a bytes.Buffer never returns an error
	_ = w.Close()
	return b.Bytes()
}

// gunzipped decompresses a request that gzipped has compressed, so its length is limited.
func gunzipped(body []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	request, _ := io.ReadAll(r)
	return request
}
