package otlp

import "strings"

// signal is what a request brings.
type signal uint8

const (
	signalTraces signal = iota
	signalMetrics
	signalLogs

	signals = int(signalLogs) + 1
)

var signalNames = [signals]string{"traces", "metrics", "logs"}

// String is the name in metrics and in answers.
func (s signal) String() string { return signalNames[s] }

// The paths of OTLP/HTTP, which stand below a base, and of OTLP/gRPC.
var (
	httpPaths = [signals]string{"/v1/traces", "/v1/metrics", "/v1/logs"}
	grpcPaths = [signals]string{
		"/opentelemetry.proto.collector.trace.v1.TraceService/Export",
		"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
		"/opentelemetry.proto.collector.logs.v1.LogsService/Export",
	}
)

// rejectedNames are the fields of a partial success in JSON.
var rejectedNames = [signals]string{"rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"}

// signalOf finds what a path brings.
func signalOf(path string) (s signal, isGRPC, found bool) {
	for i := range signals {
		switch path {
		case httpPaths[i]:
			return signal(i), false, true
		case grpcPaths[i]:
			return signal(i), true, true
		}
	}
	return 0, strings.HasPrefix(path, "/opentelemetry.proto."), false
}
