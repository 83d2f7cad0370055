package otlp

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// answers is what a receiver's responses mean, by the specification. Payloads that are not retried are
// lost.
var answers = post.Answers{
	http.StatusTooManyRequests:    {Outcome: export.OutcomeNotYet},
	http.StatusBadGateway:         {Outcome: export.OutcomeNotYet},
	http.StatusServiceUnavailable: {Outcome: export.OutcomeNotYet},
	http.StatusGatewayTimeout:     {Outcome: export.OutcomeNotYet},

	http.StatusUnauthorized: refused(" (set OTEL_EXPORTER_OTLP_HEADERS)"),
	http.StatusForbidden:    refused(" (see OTEL_EXPORTER_OTLP_HEADERS)"),
	http.StatusNotFound: refused(" (most have /v1/metrics; Prometheus has /api/v1/otlp/v1/metrics" +
		", with --web.enable-otlp-receiver)"),
	http.StatusRequestEntityTooLarge: refused(" (raise what the receiver takes)"),
	http.StatusUnsupportedMediaType:  refused(" (it takes no http/protobuf, or no gzip)"),
}

func refused(advice string) post.Meaning {
	return post.Meaning{Outcome: export.OutcomeRefused, Advice: advice}
}

// noMetrics is a request without metrics: one empty resource.
var noMetrics = []byte{fieldResourceMetrics<<3 | 2, 0}

// hint is a mistake of the operator that may be the reason why there is no answer.
func hint(e endpoint.URL) string {
	if strings.HasSuffix(e.Address, ":4317") {
		return " (4317 is the port of gRPC; http/protobuf has 4318)"
	}
	return ""
}

// readSuccess reads which part of an accepted payload the receiver left out.
func readSuccess(a *post.Answer, p *export.Payload, isPacked bool) {
	switch partial := otlpanswer.ReadPartial(a.Body); {
	case partial.Rejected > 0:
		a.Err = fmt.Errorf("receiver rejected %d data points of a payload%s", partial.Rejected,
			post.Quoted(partial.Message))
		a.Rejected = mostLeftOut(p, partial.Rejected, isPacked)
	case partial.Message != "":
		a.Err = fmt.Errorf("receiver took a payload, and said%s", post.Quoted(partial.Message))
	}
}

// mostLeftOut is how many spans of a payload are lost at most with so many of its points. The answer does
// not say which points were rejected, so those with the most spans are taken.
func mostLeftOut(p *export.Payload, points uint64, isPacked bool) uint64 {
	if p.Spans == 0 { // running totals
		return sumOfLargest(slices.Clone(p.Undelivered), points)
	}
	request := p.Body
	if isPacked {
		request = unpacked(request)
	}
	return min(p.Spans, max(1, mostSpans(request, points)))
}

// mostSpans is how many spans of a request of deltas are lost at most with so many of its points. A point
// that counts calls has no spans except those of its histogram.
func mostSpans(request []byte, points uint64) uint64 {
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

// sumOfLargest adds up the n largest counts, which it sorts.
func sumOfLargest(counts []uint64, n uint64) (sum uint64) {
	slices.Sort(counts)
	slices.Reverse(counts)
	for _, count := range counts[:min(n, uint64(len(counts)))] {
		sum += count
	}
	return sum
}

// packed compresses a request with gzip.
func packed(w *gzip.Writer, request []byte) []byte {
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(request) // to memory, which takes everything
	_ = w.Close()
	return b.Bytes()
}

// unpacked decompresses a request that was compressed here.
func unpacked(body []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	request, _ := io.ReadAll(r) // we packed it ourselves, so it is as long as the limit allowed
	return request
}
