package prometheus

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// formats are the supported exposition formats. The first is the default.
var formats = []expfmt.Format{
	expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim,
}

// scrapeBytes is the memory of a scrape without its generation, mostly for gzip.
const scrapeBytes = 1280 << 10

// scrape contains the buffers for one scrape at a time.
type scrape struct {
	families []*family
	graph    []*family    // of the edges of the service graph
	packer   *gzip.Writer // nil until it is needed
}

// newScrape returns the buffers for a scrape. calls and durations are the metrics of spans.
func newScrape(m *message, calls, durations string) *scrape {
	counter := func(name, help string, toMetric func(*record) *dto.Metric) *family {
		return &family{dto.MetricFamily{Name: &name, Type: dto.MetricType_COUNTER.Enum(), Help: &help}, toMetric}
	}
	histogram := func(name, help string) *family {
		return &family{dto.MetricFamily{Name: &name, Type: dto.MetricType_HISTOGRAM.Enum(), Help: &help}, m.durations}
	}
	return &scrape{
		families: []*family{
			counter(calls, "Spans that were counted.", m.calls),
			histogram(durations, "Durations of spans in seconds."),
		},
		graph: []*family{
			counter("traces_service_graph_request_total", "Requests between two nodes of the service graph.", m.calls),
			counter("traces_service_graph_request_failed_total",
				"Requests between two nodes of the service graph that failed.", m.errors),
			histogram("traces_service_graph_request_client_seconds",
				"Durations of requests between two nodes of the service graph, as measured by the client, or by the "+
					"server if the client has no spans."),
			histogram("traces_service_graph_request_server_seconds",
				"The same durations as traces_service_graph_request_client_seconds, under the name that Grafana's "+
					"service graph queries."),
		},
	}
}

// writeResponse writes series and the edges of the service graph in the negotiated format. An error
// means that the client has disconnected.
func (s *scrape) writeResponse(w http.ResponseWriter, r *http.Request, series, edges []*record) error {
	format, header := expfmt.NegotiateAccept(r.Header, formats...), w.Header()
	out := bufio.NewWriterSize(w, 32<<10)
	header.Set("Content-Type", string(format))
	header.Set("Vary", "Accept, Accept-Encoding")
	isCompressed := acceptsGzip(r.Header)
	if isCompressed {
		header.Set("Content-Encoding", "gzip")
		if s.packer == nil {
			s.packer, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
		}
		s.packer.Reset(w)
		out.Reset(s.packer)
	}
	writeFamilies(out, format, s.families, series)
	writeFamilies(out, format, s.graph, edges)
	if format.FormatType() == expfmt.TypeOpenMetrics {
		_, _ = expfmt.FinalizeOpenMetrics(out)
	}
	err := out.Flush()
	if isCompressed && err == nil {
		err = s.packer.Close()
	}
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	return err //nolint:wrapcheck // not shown to anyone
}

// writeFamilies writes the metrics of series, if there are any series.
func writeFamilies(out *bufio.Writer, format expfmt.Format, families []*family, series []*record) {
	if len(series) == 0 {
		return
	}
	for _, f := range families {
		f.write(out, format, series)
	}
}

// acceptsGzip reports whether a client accepts responses in gzip: Accept-Encoding names it, with a
// quality other than 0.
func acceptsGzip(header http.Header) bool {
	for _, line := range header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(line, ",") {
			name, parameter, _ := strings.Cut(coding, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			quality, hasQuality := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
			q, err := strconv.ParseFloat(quality, 64)
			return !hasQuality || err == nil && q > 0
		}
	}
	return false
}

// family is a metric, with the function that creates its message for a series.
type family struct {
	head     dto.MetricFamily // without metrics
	toMetric func(*record) *dto.Metric
}

// write writes a metric for at least one series. Errors are reported when w is flushed.
func (f *family) write(w *bufio.Writer, format expfmt.Format, series []*record) {
	switch format.FormatType() {
	case expfmt.TypeProtoDelim:
		f.writeMessage(w, series)
	case expfmt.TypeOpenMetrics:
		f.writeText(w, series, func(w io.Writer, one *dto.MetricFamily) (int, error) {
			return expfmt.MetricFamilyToOpenMetrics(w, one, expfmt.WithCreatedLines())
		})
	default:
		f.writeText(w, series, expfmt.MetricFamilyToText)
	}
}

// writeText writes each series as a family of its own, but only the first with HELP and TYPE.
func (f *family) writeText(
	w *bufio.Writer, series []*record, encode func(io.Writer, *dto.MetricFamily) (int, error),
) {
	one := &dto.MetricFamily{Name: f.head.Name, Help: f.head.Help, Type: f.head.Type}
	out := &headStripper{to: w}
	for _, r := range series {
		one.Metric = append(one.Metric[:0], f.toMetric(r))
		_, _ = encode(out, one)
		one.Help, out.inHead = nil, true // without Help, the head is one line, TYPE
	}
}

// headStripper removes the first line of an encoder's output, which is in its first write. It
// reports all bytes as written, otherwise the encoder would stop.
type headStripper struct {
	to     *bufio.Writer
	inHead bool
}

// Write writes text without its first line, if it begins with the head of a family.
func (h *headStripper) Write(text []byte) (int, error) {
	rest := text
	if h.inHead {
		_, rest, _ = bytes.Cut(text, []byte("\n"))
		h.inHead = false
	}
	_, err := h.to.Write(rest)
	return len(text), err //nolint:wrapcheck // not shown to anyone
}

// fieldMetric is the number of the field metric in MetricFamily.
const fieldMetric = 4

// writeMessage writes a family as one length-delimited message. The length precedes the message, so
// each series is converted twice: first to compute its length, then to write it. Keeping all of them
// in memory would cost more. Marshalling cannot fail, because all texts are valid UTF-8; w keeps
// write errors until it is flushed.
func (f *family) writeMessage(w *bufio.Writer, series []*record) {
	head, _ := proto.Marshal(&f.head)
	length := len(head)
	for _, r := range series {
		length += protowire.SizeTag(fieldMetric) + protowire.SizeBytes(proto.Size(f.toMetric(r)))
	}
	b := append(protowire.AppendVarint(nil, uint64(length)), head...)
	for _, r := range series {
		metric := f.toMetric(r)
		b = protowire.AppendTag(b, fieldMetric, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(proto.Size(metric)))
		b, _ = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, metric)
		_, _ = w.Write(b)
		b = b[:0]
	}
}
