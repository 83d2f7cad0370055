package otlp

import (
	"bytes"
	"compress/gzip"
	"io"
	"slices"
)

// partialSuccess is what a receiver says of a request of which it did not take all.
type partialSuccess struct {
	rejected uint64 // data points
	said     string
}

// The fields of ExportMetricsServiceResponse, and of its ExportMetricsPartialSuccess.
const (
	fieldPartial  = 1
	fieldRejected = 1
	fieldSaid     = 2
)

// readPartial reads the body of an answer to a request that was accepted. One that says
// nothing, and one that cannot be read, rejects nothing.
func readPartial(answer []byte) (p partialSuccess) {
	for message := range messages(answer, fieldPartial) {
		for f := range fields(message) {
			switch f.number {
			case fieldRejected:
				p.rejected = uint64(max(0, int64(f.value)))
			case fieldSaid:
				p.said = string(f.bytes)
			}
		}
	}
	return p
}

// mostSpans is how many spans of a request at most are lost with so many of its points.
// Nobody says which points were rejected. Those of its histograms that have the most spans
// have so many; a point that counts calls has no spans but those of its histogram.
func mostSpans(request []byte, points uint64) (spans uint64) {
	var counts []uint64
	for point := range messages(request, fieldResourceMetrics, fieldScopeMetrics, fieldMetrics, fieldMetricHistogram, fieldPoints) {
		for f := range fields(point) {
			if f.number == fieldPointCount {
				counts = append(counts, f.value)
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
