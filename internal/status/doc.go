// Package status is what the outside sees: the metrics, the probes, the books,
// /status for a program and the page at / for a person.
//
// It owns no state but its HTTP server. Everything that it shows it reads at
// the moment of the question from the statistics of the other rooms, which
// count with atomics of their own: the hot path never touches a metrics
// library, and a scrape never makes it wait. It writes to nobody.
//
// The page is a few files in the binary. It knows nothing of its own: it asks /status, which
// is a contract (docs/status-api.md), and draws the answer. Values from tracers become text in it
// and nothing else; the policy that is sent with the page has the browser refuse anything
// else.
//
// The page and the status answer to names that nobody else can give himself alone (hosts), so
// that no page from elsewhere reads them. Metrics and probes answer to any.
//
// A status is bounded whatever tracers do: so many connections, flushes and
// aggregates, labels of so many bytes.
//
// No metric's label has a value that a tracer chooses; every reason and field is
// present from the start at 0, so that a rate over it exists before the first loss.
package status
