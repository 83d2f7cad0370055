package sdkmetrics

import "strings"

// Sums are the span counts that all SDKs have reported since the Accumulator was created.
type Sums struct {
	Started  uint64 `json:"started"`  // started spans
	Sampled  uint64 `json:"sampled"`  // started spans that are sampled, and so exported
	Dropped  uint64 `json:"dropped"`  // spans dropped by a span processor, nearly always because its queue was full
	Exported uint64 `json:"exported"` // spans that OTLP exporters have delivered
	Failed   uint64 `json:"failed"`   // spans that OTLP exporters have dropped after retries
}

// count adds spans to one of the sums, depending on the metric name and the attributes of a data point. It ignores
// spans that a processor reports without an error, because their exporter reports them too. It also ignores the spans
// of exporters other than OTLP.
func (s *Sums) count(p *point, spans uint64) {
	switch string(p.name) {
	case spanStarted:
		s.Started += spans
		if p.attribute("otel.span.sampling_result") == "RECORD_AND_SAMPLE" {
			s.Sampled += spans
		}
	case spanProcessed:
		if p.attribute("error.type") != "" {
			s.Dropped += spans
		}
	case javaProcessed:
		if p.attribute("dropped") == "true" {
			s.Dropped += spans
		}
	case spanExported:
		if strings.HasPrefix(p.attribute("otel.component.type"), "otlp") {
			hasSucceeded := p.attribute("error.type") == ""
			s.countExported(hasSucceeded, spans)
		}
	case javaExported:
		if p.attribute("type") == "span" {
			hasSucceeded := p.attribute("success") == "true"
			s.countExported(hasSucceeded, spans)
		}
	}
}

// countExported adds spans to the exported spans if the destination has accepted them, and otherwise to the failed.
func (s *Sums) countExported(isAccepted bool, spans uint64) {
	if isAccepted {
		s.Exported += spans
	} else {
		s.Failed += spans
	}
}
