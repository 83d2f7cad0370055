package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// encodeOTLP encodes a request as an SDK does, with a resource per service.
func encodeOTLP(r request) ([]byte, error) {
	traces := ptrace.NewTraces()
	scopes := map[string]ptrace.ScopeSpans{}
	for _, s := range r.spans {
		scope, ok := scopes[s.service]
		if !ok {
			resource := traces.ResourceSpans().AppendEmpty()
			resource.Resource().Attributes().PutStr("service.name", s.service)
			scope = resource.ScopeSpans().AppendEmpty()
			scopes[s.service] = scope
		}
		fillOTLPSpan(scope.Spans().AppendEmpty(), s, r.weight)
	}
	return ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
}

func fillOTLPSpan(to ptrace.Span, s span, weight int) {
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], s.id)
	var trace [16]byte
	copy(trace[:], "judgment")
	copy(trace[8:], id[:])
	to.SetSpanID(id)
	to.SetTraceID(trace)
	to.SetName(s.spanName.span)
	to.SetKind(ptrace.SpanKindServer)
	to.SetStartTimestamp(pcommon.NewTimestampFromTime(s.end.Add(-s.duration)))
	to.SetEndTimestamp(pcommon.NewTimestampFromTime(s.end))
	if weight > 1 {
		to.TraceState().FromRaw("ot=th:" + samplingThreshold(weight))
	}
	if s.isUnique {
		return
	}
	to.Attributes().PutStr("http.request.method", "GET")
	to.Attributes().PutStr("http.route", s.spanName.span[len("GET "):])
	to.Attributes().PutInt("http.response.status_code", http.StatusOK)
}

// samplingThreshold returns the value of OpenTelemetry's sampling threshold for one span in so many.
func samplingThreshold(oneIn int) string {
	const values = 1 << 56
	return fmt.Sprintf("%014x", uint64(math.Round(values*(1-1/float64(oneIn)))))
}

// otlpDestination is an output that receives OTLP metrics with delta temporality.
type otlpDestination struct {
	listener
	ledger *ledger
}

func startOTLPDestination(l *ledger) (*otlpDestination, error) {
	d := &otlpDestination{ledger: l}
	return d, d.listen(http.HandlerFunc(d.receive))
}

func (d *otlpDestination) receive(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	request := pmetricotlp.NewExportRequest()
	if err == nil {
		err = request.UnmarshalProto(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.ledger.add(callsOf(request.Metrics()))
	response, _ := pmetricotlp.NewExportResponse().MarshalProto() // an empty message
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(response)
}

// callsOf returns the increases of the calls metric. The connector sets the service as an attribute of the points, spanstatsd as one of
// the resource.
func callsOf(metrics pmetric.Metrics) counts {
	calls := counts{}
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				if metric.Name() != "traces.span.metrics.calls" {
					continue
				}
				for _, p := range metric.Sum().DataPoints().All() {
					name := spanName{
						service: firstAttribute("service.name", p.Attributes(), resource.Resource().Attributes()),
						span:    firstAttribute("span.name", p.Attributes()),
					}
					calls[name] += float64(p.IntValue())
				}
			}
		}
	}
	return calls
}

// firstAttribute returns the value of an attribute in the first list that has it.
func firstAttribute(key string, lists ...pcommon.Map) string {
	for _, attributes := range lists {
		if value, ok := attributes.Get(key); ok {
			return value.AsString()
		}
	}
	return ""
}

// maxBody limits the size of a received request.
const maxBody = 256 << 20

func readBody(r *http.Request) ([]byte, error) {
	body, err := decompressed(r)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(body, maxBody))
}
