package otlp

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/post"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
	"google.golang.org/protobuf/encoding/protowire"
)

// answers are what a receiver means, by the specification: what is not sent again is lost.
var answers = post.Answers{
	http.StatusTooManyRequests:    {Outcome: flush.OutcomeNotYet},
	http.StatusBadGateway:         {Outcome: flush.OutcomeNotYet},
	http.StatusServiceUnavailable: {Outcome: flush.OutcomeNotYet},
	http.StatusGatewayTimeout:     {Outcome: flush.OutcomeNotYet},

	http.StatusUnauthorized: refused(" (set OTEL_EXPORTER_OTLP_HEADERS)"),
	http.StatusForbidden:    refused(" (see OTEL_EXPORTER_OTLP_HEADERS)"),
	http.StatusNotFound: refused(" (most have /v1/metrics; Prometheus has /api/v1/otlp/v1/metrics" +
		", with --web.enable-otlp-receiver)"),
	http.StatusRequestEntityTooLarge: refused(" (raise what the receiver takes)"),
	http.StatusUnsupportedMediaType:  refused(" (it takes no http/protobuf, or no gzip)"),
}

func refused(advice string) post.Meaning {
	return post.Meaning{Outcome: flush.OutcomeRefused, Advice: advice}
}

// noMetrics is a request with none: one resource of which nothing is said.
var noMetrics = []byte{fieldResourceMetrics<<3 | 2, 0}

// hint is what an operator may have mistaken, where nobody answers.
func hint(e post.Endpoint) string {
	if strings.HasSuffix(e.Address, ":4317") {
		return " (4317 is the port of gRPC; http/protobuf has 4318)"
	}
	return ""
}

// readSuccess counts what a receiver left out of a payload that it took.
func readSuccess(a *post.Answer, p *flush.Payload, isPacked bool) {
	switch partial := otlpanswer.ReadPartial(a.Body); {
	case partial.Rejected > 0:
		a.Err = fmt.Errorf("receiver rejected %d data points of a payload%s", partial.Rejected,
			post.Quoted(partial.Said))
		a.Rejected = mostLeftOut(p, partial.Rejected, isPacked)
	case partial.Said != "":
		a.Err = fmt.Errorf("receiver took a payload, and said%s", post.Quoted(partial.Said))
	}
}

// mostLeftOut is how many spans of a payload at most are lost with so many of its points.
func mostLeftOut(p *flush.Payload, points uint64, isPacked bool) uint64 {
	if said, is := p.Totals.(*totals.Said); is {
		return said.Most(points)
	}
	sent := p.Body
	if isPacked {
		sent = unpacked(sent)
	}
	return min(p.Spans, max(1, mostSpans(sent, points)))
}

// mostSpans is how many spans of a request at most are lost with so many of its points.
// Nobody says which points were rejected. Those of its histograms that have the most spans
// have so many; a point that counts calls has no spans but those of its histogram.
func mostSpans(request []byte, points uint64) (spans uint64) {
	var counts []uint64
	for _, kind := range [...]protowire.Number{fieldMetricHistogram, fieldMetricExplicit} {
		for point := range messages(
			request, fieldResourceMetrics, fieldScopeMetrics, fieldMetrics, kind, fieldPoints,
		) {
			for f := range otlpanswer.Fields(point) {
				if f.Number == fieldPointCount {
					counts = append(counts, f.Value)
				}
			}
		}
	}
	slices.Sort(counts)
	slices.Reverse(counts)
	for _, n := range counts[:min(points, uint64(len(counts)))] {
		spans += n
	}
	return spans
}

// messages goes through what stands in a message below a path of fields.
func messages(message []byte, path ...protowire.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(path) == 0 {
			yield(message)
			return
		}
		for f := range otlpanswer.Fields(message) {
			if f.Number != path[0] || f.Bytes == nil {
				continue
			}
			for below := range messages(f.Bytes, path[1:]...) {
				if !yield(below) {
					return
				}
			}
		}
	}
}

// packed is a request with gzip.
func packed(w *gzip.Writer, request []byte) []byte {
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(request) // to memory, which takes everything
	_ = w.Close()
	return b.Bytes()
}

// unpacked is a request without gzip again.
func unpacked(body []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	request, _ := io.ReadAll(r) // we packed it ourselves, so it is as long as the limit allowed
	return request
}
