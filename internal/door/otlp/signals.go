package otlp

import "strings"

// signal is what a request brings, as a place in signals.
type signal uint8

const (
	signalTraces signal = iota
	signalMetrics
	signalLogs
	signalHealth // none of OTLP: it asks for the daemon's
)

// signals have names, in metrics and in answers; paths of OTLP/HTTP, which stand below a base, and of
// OTLP/gRPC; and a field of a partial success in JSON.
var signals = [...]struct{ name, http, grpc, rejected string }{
	{"traces", "/v1/traces", grpcPath("trace.v1.Trace"), "rejectedSpans"},
	{"metrics", "/v1/metrics", grpcPath("metrics.v1.Metrics"), "rejectedDataPoints"},
	{"logs", "/v1/logs", grpcPath("logs.v1.Logs"), "rejectedLogRecords"},
}

const (
	grpcPaths    = "/opentelemetry.proto."
	exportMethod = "/Export"
)

func grpcPath(service string) string {
	return grpcPaths + "collector." + service + "Service" + exportMethod
}

// signalOf finds what a path brings.
func signalOf(path string) (s signal, isGRPC, found bool) {
	for i := range signals {
		switch path {
		case signals[i].http:
			return signal(i), false, true
		case signals[i].grpc:
			return signal(i), true, true
		}
	}
	if path == healthPath {
		return signalHealth, true, true
	}
	return 0, strings.HasPrefix(path, grpcPaths), false
}

// encoding is how a request's message is written.
type encoding uint8

const (
	inProtobuf encoding = iota // OTLP/HTTP
	inJSON
	inGRPC
	unknownEncoding // none of OTLP
)

// The media types of OTLP.
const (
	mediaProtobuf = "application/x-protobuf"
	mediaJSON     = "application/json"
	mediaGRPC     = "application/grpc"
	mediaPage     = "text/html" // which is none of them
)

var mediaOf = [...]string{inProtobuf: mediaProtobuf, inJSON: mediaJSON, inGRPC: mediaGRPC}
