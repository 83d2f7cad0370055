// Package zipkin implements a receiver of Zipkin's API v2: POST /api/v2/spans in JSON and in protobuf, compressed or
// not, answered with 202. Spans count by OpenTelemetry's conventions (see package decode/zipkin), and requests
// are forwarded byte for byte to --zipkin-forward, or end here.
//
// Zipkin's reporters do not retry a refused request. So a request that can't be counted is forwarded all
// the same, unless it exceeds the memory limits; without an upstream it is refused, and lost. Spans that find
// the rings full are dropped as refused.
//
// # Concurrency and limits
//
// The limits are those of package receiver. Counting waits for one of the workers, each of which holds one body.
package zipkin
