// Package zipkin is, to who reports spans to Zipkin, a Zipkin: it takes POST /api/v2/spans in JSON and in
// protobuf, compressed or not, and answers 202. Spans count by OpenTelemetry's conventions (package
// decode/zipkin says how), and the request goes on to --zipkin-forward byte for byte, or ends here.
//
// Nobody who reports to Zipkin sends again what was refused. So whatever can't be counted goes on all the
// same, but for what was never whole in memory; and where it ends here it is refused, and lost.
//
// # Threading and bounds
//
// As package door. Counting waits for one of the workers, each of which holds one body.
package zipkin
