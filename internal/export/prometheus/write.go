package prometheus

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// formats are the supported ones. The first is the default.
var formats = []expfmt.Format{
	expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim,
}

// scrapeBytes is the memory of a scrape without its generation: mostly gzip's.
const scrapeBytes = 1280 << 10

// scrape has the buffers of a scrape, and is reused.
type scrape struct {
	families []*family
	packer   *gzip.Writer // nil before it is needed
}

func newScrape(m *message, calls, durations string) *scrape {
	return &scrape{families: []*family{{dto.MetricFamily{
		Name: &calls, Type: dto.MetricType_COUNTER.Enum(), Help: proto.String("Spans that were counted."),
	}, m.calls}, {dto.MetricFamily{
		Name: &durations, Type: dto.MetricType_HISTOGRAM.Enum(),
		Help: proto.String("Durations of spans in seconds."),
	}, m.durations}}}
}

// answer writes series in the format that was asked for. An error means that the client has left.
func (s *scrape) answer(w http.ResponseWriter, r *http.Request, all []*record) error {
	format, header := expfmt.NegotiateAccept(r.Header, formats...), w.Header()
	out := bufio.NewWriterSize(w, 32<<10)
	header.Set("Content-Type", string(format))
	header.Set("Vary", "Accept, Accept-Encoding")
	isPacked := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	if isPacked {
		header.Set("Content-Encoding", "gzip")
		if s.packer == nil {
			s.packer, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
		}
		s.packer.Reset(w)
		out.Reset(s.packer)
	}
	for _, f := range s.families {
		if len(all) > 0 {
			f.write(out, format, all)
		}
	}
	if format.FormatType() == expfmt.TypeOpenMetrics {
		_, _ = expfmt.FinalizeOpenMetrics(out)
	}
	err := out.Flush()
	if isPacked && err == nil {
		err = s.packer.Close()
	}
	if err == nil {
		err = http.NewResponseController(w).Flush() // what net/http still has
	}
	return err //nolint:wrapcheck // it is not read
}

// family is a metric, and how it is made of a series.
type family struct {
	head dto.MetricFamily // without metrics
	of   func(*record) *dto.Metric
}

// write writes a metric of some series, at least one, in a format. Errors show when w is flushed.
func (f *family) write(w *bufio.Writer, format expfmt.Format, all []*record) {
	switch format.FormatType() {
	case expfmt.TypeProtoDelim:
		f.writeMessage(w, all)
	case expfmt.TypeOpenMetrics:
		f.writeText(w, all, func(w io.Writer, one *dto.MetricFamily) (int, error) {
			return expfmt.MetricFamilyToOpenMetrics(w, one, expfmt.WithCreatedLines())
		})
	default:
		f.writeText(w, all, expfmt.MetricFamilyToText)
	}
}

// writeText writes each series as a family, and only the first with its head.
func (f *family) writeText(
	w *bufio.Writer, all []*record, encode func(io.Writer, *dto.MetricFamily) (int, error),
) {
	one := &dto.MetricFamily{Name: f.head.Name, Help: f.head.Help, Type: f.head.Type}
	out := &headless{to: w}
	for _, r := range all {
		one.Metric = append(one.Metric[:0], f.of(r))
		_, _ = encode(out, one)
		one.Help, out.inHead = nil, true // of which one line is left
	}
}

// headless removes the first line of an encoder's output, which is in its first write. It reports all bytes
// as written, or the encoder would stop.
type headless struct {
	to     *bufio.Writer
	inHead bool
}

func (h *headless) Write(text []byte) (int, error) {
	rest := text
	if h.inHead {
		_, rest, _ = bytes.Cut(text, []byte("\n"))
		h.inHead = false
	}
	_, err := h.to.Write(rest)
	return len(text), err //nolint:wrapcheck // it is not read
}

// fieldMetric is the number of the field metric of MetricFamily.
const fieldMetric = 4

// writeMessage writes a family as one message after its length, series by series.
func (f *family) writeMessage(w *bufio.Writer, all []*record) {
	head, _ := proto.Marshal(&f.head)
	size := len(head)
	for _, r := range all {
		size += protowire.SizeTag(fieldMetric) + protowire.SizeBytes(proto.Size(f.of(r)))
	}
	b := append(protowire.AppendVarint(nil, uint64(size)), head...)
	for _, r := range all {
		metric := f.of(r)
		b = protowire.AppendTag(b, fieldMetric, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(proto.Size(metric)))
		b, _ = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, metric)
		_, _ = w.Write(b)
		b = b[:0]
	}
}
