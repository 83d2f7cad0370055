package prometheus

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// formats are the supported exposition formats. The first is the default.
var formats = []expfmt.Format{
	expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim,
}

// encoderBytes is the memory of an encoder, mostly for gzip.
const encoderBytes = 1280 << 10

// encoder writes responses to scrapes, one at a time. Its memory is reused for the next response.
type encoder struct {
	spanFamilies [][]*family  // by index of points.Metric
	edgeFamilies []*family    // metrics of the service graph
	compressor   *gzip.Writer // nil until it is needed

	eventFamilies, goodEventFamilies []*family // metrics of objectives
}

// newEncoder returns an encoder for the given metrics of spans, for the metrics of the service graph, and for the
// metrics of objectives. graphBounds are the upper bounds of the classic buckets of the service graph, which has no
// classic buckets if graphBounds is empty. If isNative is true, all histograms have native buckets.
func newEncoder(metrics []points.Metric, graphBounds []float64, isNative bool) *encoder {
	// Families share a message as the memory for one series at a time. Its methods fill it with the calls, the errors or
	// the durations of a series.
	objective := newMessage(nil, false) // without buckets, because objectives have only counters
	e := &encoder{
		edgeFamilies: newEdgeFamilies(newMessage(graphBounds, isNative)),
		eventFamilies: []*family{
			newCounter(points.ObjectiveEventsTotal, "Spans that a service level objective counts.", objective.toCalls),
		},
		goodEventFamilies: []*family{
			newCounter(points.ObjectiveGoodEventsTotal,
				"Spans without an error that took at most the threshold of a service level objective.", objective.toCalls),
		},
	}
	for _, metric := range metrics {
		ofMetric := newMessage(metric.Bounds, isNative)
		var families []*family
		if metric.Calls != "" {
			families = append(families, newCounter(metric.Calls, "Spans that were counted.", ofMetric.toCalls))
		}
		families = append(families, newHistogram(metric.Durations, metric.Help, ofMetric))
		e.spanFamilies = append(e.spanFamilies, families)
	}
	return e
}

// newEdgeFamilies returns the metrics of the service graph, which use m for the protobuf metric of one edge.
func newEdgeFamilies(m *message) []*family {
	return []*family{
		newCounter(points.GraphRequests, "Requests between two nodes of the service graph.", m.toCalls),
		newCounter(points.GraphFailures,
			"Requests between two nodes of the service graph that failed.", m.toErrors),
		newHistogram(points.GraphClientDurations,
			"Durations of requests between two nodes of the service graph, as measured by the client, or by the "+
				"server if the client has no spans.", m),
		newHistogram(points.GraphServerDurations,
			"The same durations as traces_service_graph_request_client_seconds, under the name that Grafana's "+
				"service graph queries.", m),
	}
}

func newCounter(name, help string, toMetric func(*record) *dto.Metric) *family {
	return &family{dto.MetricFamily{Name: &name, Type: dto.MetricType_COUNTER.Enum(), Help: &help}, toMetric}
}

// newHistogram returns a metric for durations, which uses m for the protobuf metric of one series.
func newHistogram(name, help string, m *message) *family {
	return &family{dto.MetricFamily{Name: &name, Type: dto.MetricType_HISTOGRAM.Enum(), Help: &help}, m.toDurations}
}

// writeResponse writes all metrics of c in the format that the client accepts, compressed if it accepts gzip. An error
// means that the client has disconnected.
func (e *encoder) writeResponse(w http.ResponseWriter, r *http.Request, c *content) error {
	format := expfmt.NegotiateAccept(r.Header, formats...)
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	write := e.writeBody
	if acceptsGzip(r.Header) {
		w.Header().Set("Content-Encoding", "gzip")
		write = e.writeCompressed
	}
	if err := write(w, format, c); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush() //nolint:wrapcheck // not shown to anyone
}

// writeCompressed writes a body in the given format, compressed with gzip.
func (e *encoder) writeCompressed(w io.Writer, format expfmt.Format, c *content) error {
	if e.compressor == nil {
		e.compressor, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	}
	e.compressor.Reset(w)
	if err := e.writeBody(e.compressor, format, c); err != nil {
		return err
	}
	return e.compressor.Close() //nolint:wrapcheck // not shown to anyone
}

// writeBody writes all metrics of c in the given format.
func (e *encoder) writeBody(w io.Writer, format expfmt.Format, c *content) error {
	out := bufio.NewWriterSize(w, 32<<10)
	for metric, families := range e.spanFamilies {
		writeFamilies(out, format, families, recordsOf(c.series, metric))
	}
	writeFamilies(out, format, e.edgeFamilies, c.edges)
	writeFamilies(out, format, e.eventFamilies, c.objectives.events)
	writeFamilies(out, format, e.goodEventFamilies, c.objectives.good)
	if format.FormatType() == expfmt.TypeOpenMetrics {
		_, _ = expfmt.FinalizeOpenMetrics(out)
	}
	return out.Flush() //nolint:wrapcheck // not shown to anyone
}

// recordsOf returns the series of a metric, given all series, which are sorted by metric.
func recordsOf(series []*record, metric int) []*record {
	compare := func(r *record, metric int) int { return cmp.Compare(r.metric, metric) }
	first, _ := slices.BinarySearchFunc(series, metric, compare)
	end, _ := slices.BinarySearchFunc(series, metric+1, compare)
	return series[first:end]
}

// writeFamilies writes metrics of series, if there are any series.
func writeFamilies(out *bufio.Writer, format expfmt.Format, families []*family, series []*record) {
	if len(series) == 0 {
		return
	}
	for _, f := range families {
		f.write(out, format, series)
	}
}

// acceptsGzip reports whether a client accepts responses in gzip: Accept-Encoding contains gzip, without a quality or
// with one above 0, as in "gzip;q=0.5".
func acceptsGzip(header http.Header) bool {
	for _, line := range header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(line, ",") {
			name, parameter, _ := strings.Cut(coding, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			qualityText, hasQuality := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
			if !hasQuality {
				return true
			}
			quality, err := strconv.ParseFloat(qualityText, 64)
			return err == nil && quality > 0
		}
	}
	return false
}

// family is a metric, with the function that creates its message for a series.
type family struct {
	head     dto.MetricFamily // without metrics
	toMetric func(*record) *dto.Metric
}

// write writes the metric for all series, of which there is at least one. Errors are reported when w is flushed.
func (f *family) write(w *bufio.Writer, format expfmt.Format, series []*record) {
	switch format.FormatType() {
	case expfmt.TypeProtoDelim:
		f.writeDelimited(w, series)
	case expfmt.TypeOpenMetrics:
		f.writeText(w, series, func(w io.Writer, single *dto.MetricFamily) (int, error) {
			return expfmt.MetricFamilyToOpenMetrics(w, single, expfmt.WithCreatedLines())
		})
	default:
		f.writeText(w, series, expfmt.MetricFamilyToText)
	}
}

// writeText writes the metric in a text format. It calls encode once for each series, with a family that contains
// only this series. encode writes the lines HELP and TYPE each time; writeText keeps only the first ones.
func (f *family) writeText(
	w *bufio.Writer, series []*record, encode func(io.Writer, *dto.MetricFamily) (int, error),
) {
	single := &dto.MetricFamily{Name: f.head.Name, Help: f.head.Help, Type: f.head.Type}
	out := &lineSkipper{out: w}
	for i, r := range series {
		if i > 0 {
			single.Help = nil        // so that encode does not write HELP, and TYPE is its first line
			out.skipsNextLine = true // TYPE
		}
		single.Metric = append(single.Metric[:0], f.toMetric(r))
		_, _ = encode(out, single)
	}
}

// lineSkipper writes text to out, and can skip one line.
type lineSkipper struct {
	out           *bufio.Writer
	skipsNextLine bool // skip the first line of the next text
}

// Write writes text to l.out, without its first line if l.skipsNextLine is true. It returns the length of all of text,
// even if a line was skipped: with less, the caller would report a short write.
func (l *lineSkipper) Write(text []byte) (int, error) {
	written := text
	if l.skipsNextLine {
		_, written, _ = bytes.Cut(text, []byte("\n"))
		l.skipsNextLine = false
	}
	_, err := l.out.Write(written)
	return len(text), err //nolint:wrapcheck // not shown to anyone
}

// fieldMetric is the number of the field metric in MetricFamily.
const fieldMetric = 4

// writeDelimited writes the metric as one protobuf message, preceded by its length. It converts each series twice, first
// to compute the length and then to write it, because the messages of all series together would need much memory. It
// ignores errors: messages with valid UTF-8 can always be encoded, and w returns a write error when it is flushed.
func (f *family) writeDelimited(w *bufio.Writer, series []*record) {
	head, _ := proto.Marshal(&f.head)
	length := len(head)
	for _, r := range series {
		metricBytes := proto.Size(f.toMetric(r))
		length += protowire.SizeTag(fieldMetric) + protowire.SizeBytes(metricBytes)
	}
	_, _ = w.Write(protowire.AppendVarint(nil, uint64(length)))
	_, _ = w.Write(head)
	var metric, field []byte
	for _, r := range series {
		metric, _ = proto.MarshalOptions{}.MarshalAppend(metric[:0], f.toMetric(r))
		field = protowire.AppendTag(field[:0], fieldMetric, protowire.BytesType)
		field = protowire.AppendBytes(field, metric)
		_, _ = w.Write(field)
	}
}
