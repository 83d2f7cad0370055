// Package post sends bodies to a destination over HTTP, and reports of each whether it arrived, so that an
// exporter is an encoding and a table of answers.
//
//	Poster.Post: offer a body once   ->   an Answer: the export.Attempt, and the response
//	Poster.Probe: a body with nothing in it, to find out how a silent destination accepts bodies
//
// A body that certainly did not arrive can be retried, and no other, because destinations do not
// deduplicate. expectMode describes how bodies are sent so that most failures are certain. A request of
// which any byte was refused did not arrive; one that was written completely and never answered may have
// been counted, so its outcome is unknown. net/http considers a request written when its last bytes are in
// a buffer of its own, and also if the body was never asked for. Therefore both are observed: that the body
// was read, and that no write to the connection failed.
//
// Concurrency: any number of requests can be in flight. They share the mode, and one probe at a time. What
// net/http's goroutines record of a body is atomic, and complete once RoundTrip has returned, because
// net/http returns from a failed request only after its writing goroutine has ended.
//
// Limits: a request ends with its context; maxRead of a response's body is read, maxMessage of it is shown,
// and 64 KiB of its headers are read; no response makes its reader wait for longer than
// otlpanswer.MaxRetryAfter.
package post
