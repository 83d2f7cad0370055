package sdkmetrics

import "strings"

// Sums are what all SDKs said since somebody listened.
type Sums struct {
	Started  uint64 `json:"started"`  // spans that were begun
	Sampled  uint64 `json:"sampled"`  // of them those that go to an exporter
	Dropped  uint64 `json:"dropped"`  // that a processor lost, nearly always for a full queue
	Exported uint64 `json:"exported"` // that exporters of OTLP were done with
	Failed   uint64 `json:"failed"`   // that they gave up
}

// count counts spans by what their point says of them. Those that went to another exporter than one of OTLP
// are nobody's, and so are those that a processor was done with, since an exporter has them next.
func (s *Sums) count(p *point, spans uint64) {
	switch string(p.name) {
	case spanStarted:
		s.Started += spans
		if p.text("otel.span.sampling_result") == "RECORD_AND_SAMPLE" {
			s.Sampled += spans
		}
	case spanProcessed:
		if p.text("error.type") != "" {
			s.Dropped += spans
		}
	case javaProcessed:
		if p.text("dropped") == "true" {
			s.Dropped += spans
		}
	case spanExported:
		if strings.HasPrefix(p.text("otel.component.type"), "otlp") {
			s.countExported(p.text("error.type") == "", spans)
		}
	case javaExported:
		if p.text("type") == "span" {
			s.countExported(p.text("success") == "true", spans)
		}
	}
}

func (s *Sums) countExported(isTaken bool, spans uint64) {
	if isTaken {
		s.Exported += spans
	} else {
		s.Failed += spans
	}
}
