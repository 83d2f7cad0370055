// Package status serves the daemon's metrics, probes, accounting, /status for programs, and the page at /.
//
// It has no state except for its HTTP server. For each request it reads the statistics of the other packages,
// which count with atomics of their own: the hot path never uses a metrics library, and never waits for a
// scrape. It changes nothing.
//
// The page consists of static files. It requests /status, which is a stable format (docs/status-api.md), and renders
// the response. Values from clients are shown as text only; the page's content security policy makes the browser
// reject anything else. Page and status are served only for known host names (hosts), so that other web pages
// can't read them. Metrics and probes are served for any.
//
// # Limits
//
// The size of a status is bounded regardless of what clients send: numbers of connections, flushes and
// aggregates, and lengths of labels. Metrics have no label values chosen by clients, except for the at most 16
// labels that exceeded their budgets in the last interval. Every reason and field is present as 0 from the
// start, so that a rate over it exists before the first loss.
package status
