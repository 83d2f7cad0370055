// Package zipkin implements a receiver for Zipkin's API v2: POST /api/v2/spans in JSON and in protobuf, compressed
// or not. Spans are counted according to OpenTelemetry's semantic conventions (see package decode/zipkin). Requests
// are forwarded byte for byte to the upstream of --zipkin-forward. Without an upstream the response is 202.
//
// Zipkin reporters do not retry a refused request. So a request that can't be counted is forwarded anyway, unless its
// body is too large; without an upstream it is refused. Spans that find the rings full are dropped with the reason
// "refused".
//
// # Concurrency and limits
//
// Package receiver defines the limits. Each report needs one of a fixed number of workers while it is counted.
package zipkin
