// Package zipkin implements a receiver for Zipkin's API v2: POST /api/v2/spans in JSON and in protobuf, compressed
// or not. Spans are counted according to OpenTelemetry's conventions (see package decode/zipkin). Requests are
// forwarded byte for byte to --zipkin-forward; without it they are answered with 202.
//
// Zipkin reporters do not retry a refused request. So a request that can't be counted is forwarded anyway,
// unless it exceeds the memory limits; without an upstream it is refused. Spans that find the rings full are
// dropped as refused.
//
// # Concurrency and limits
//
// The limits are those of package receiver. Counting waits for one of the workers, each of which counts one
// body at a time.
package zipkin
