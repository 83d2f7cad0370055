// Package standin implements a mock Datadog agent for the demo, the benchmarks and the tests.
// It accepts statistics over HTTP like the real agent.
//
// It is at least as strict as the real agent. Requests that the real one rejects are rejected
// with the same status: a payload that internal/decode/payload cannot parse, a compressed body,
// a body over 25 MiB. Payloads that the real one accepts silently, but would display wrongly,
// are accepted and recorded as problems.
//
// It accepts traces as well. It counts requests and bytes, separately for those marked as
// counted, and does not decode the spans.
//
// Concurrency: requests are served concurrently; one mutex guards the totals. Limits: maxRows
// rows and one for all others, payload.MaxProblems problems, and the size of a body. Payloads
// are not kept; each is passed to Config.OnPayload.
package standin
