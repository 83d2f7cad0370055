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

// hint returns advice for errors without a response, if the address suggests a common mistake: the gRPC port.
func hint(e endpoint.URL) string {
	if strings.HasSuffix(e.Address, ":4317") {
		return " (4317 is the gRPC port; the daemon sends http/protobuf, whose port is 4318)"
	}
	return ""
}

// readPartialSuccess reads the body of the response to an accepted payload. If the receiver has rejected some data
// points, it sets a.Err, and sets a.Rejected to an upper bound of the number of spans that these points count. If
// the response only contains a warning, it sets a.Err to the warning.
func readPartialSuccess(a *post.Answer, p *export.Payload, isCompressed bool) {
	partial := otlpanswer.ReadPartial(a.Body)
	switch {
	case partial.Rejected > 0:
		a.Err = fmt.Errorf("receiver rejected %d data points of a payload%s", partial.Rejected,
			post.Quoted(partial.Message))
		a.Rejected = maxRejectedSpans(p, partial.Rejected, isCompressed)
	case partial.Message != "":
		a.Err = fmt.Errorf("receiver accepted a payload with a warning%s", post.Quoted(partial.Message))
	}
}

// maxRejectedSpans returns an upper bound of the number of spans in the rejected data points of a payload. The
// response only contains the number of these points, so it assumes that the points with the most spans were
// rejected.
func maxRejectedSpans(p *export.Payload, rejectedPoints uint64, isCompressed bool) uint64 {
	if p.HasRunningTotals() {
		spansBySeries := slices.Clone(p.Undelivered)
		return sumOfLargest(spansBySeries, rejectedPoints)
	}
	request := p.Body
	if isCompressed {
		request = decompress(request)
	}
	const minRejected = 1 // even without histograms: a rejected point counts at least one span
	rejectedSpans := max(minRejected, maxSpansInPoints(request, rejectedPoints))
	return min(rejectedSpans, p.Spans)
}

// maxSpansInPoints returns the maximum number of spans that n data points of a request count together. It reads only
// histograms, because the points of the calls metric count the same spans.
func maxSpansInPoints(request []byte, n uint64) uint64 {
	var counts []uint64
	for _, kind := range [...]protolite.Number{fieldMetricExponential, fieldMetricHistogram} {
		encodedPoints := protolite.Messages(
			request, fieldResourceMetrics, fieldScopeMetrics, fieldMetrics, kind, fieldPoints)
		for point := range encodedPoints {
			counts = append(counts, spansInPoint(point))
		}
	}
	return sumOfLargest(counts, n)
}

// spansInPoint returns the number of spans that an encoded data point of a histogram counts.
func spansInPoint(point []byte) uint64 {
	for f := range protolite.Fields(point) {
		if f.Number == fieldPointCount {
			return f.Value
		}
	}
	return 0
}

// sumOfLargest returns the sum of the n largest counts. It changes the order of counts.
func sumOfLargest(counts []uint64, n uint64) (sum uint64) {
	slices.Sort(counts)
	slices.Reverse(counts)
	for _, count := range counts[:min(n, uint64(len(counts)))] {
		sum += count
	}
	return sum
}

// compress returns a request compressed with w.
func compress(w *gzip.Writer, request []byte) []byte {
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(request) // a bytes.Buffer never returns an error
	_ = w.Close()
	return b.Bytes()
}

// decompress returns the uncompressed form of a body that compress has returned. It must not be used for data from
// other processes, because it does not limit the length of the result, and ignores errors.
func decompress(body []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	request, _ := io.ReadAll(r)
	return request
}
