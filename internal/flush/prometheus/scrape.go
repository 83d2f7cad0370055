package prometheus

import (
	"bufio"
	"compress/gzip"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"
)

// formats are those that can be asked for. Who asks for none of them gets a text.
var formats = []expfmt.Format{
	expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim,
}

// scrapeBytes is what one takes beside its generation: mostly gzip's.
const scrapeBytes = 1280 << 10

// scrape is what one needs, used again for the next.
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

// answer writes series as it is asked for. Its error means that who asked has left.
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
	return err //nolint:wrapcheck // nobody reads it
}
