// Package otlpanswer reads and writes the responses of OTLP servers over gRPC and HTTP: google.rpc.Status with its
// retry delay, and partial success. The OTLP receiver and the OTLP exporter use it.
//
// Responses are written by other servers. Fields that cannot be parsed are ignored, no retry delay is longer than
// MaxRetryAfter, and only texts are copied from a response.
//
// Concurrency: all functions are safe for concurrent use.
package otlpanswer
