// Package prometheus is the pull exporter: it adds what cycles count to running totals, which are scraped.
//
//	sealing goroutine                               a scrape
//	  points of the rows (package points)             take the last snapshot
//	  add them to the totals (package totals)         write it, one series after the other
//	  publish a snapshot  ------ one pointer ---->
//
// A snapshot is all series as they were at the end of a cycle. It never changes, so a scrape takes no
// lock that the exporter needs, and has a whole number of cycles. Series that a cycle has not counted share
// their records with the previous snapshot. A series that nothing was added to for Limits.Idle is not
// shown, and begins again when it is counted. Series are identified by their labels alone: two processes of
// one service are one series.
//
// Spans count as flushed when they are published. LastScrape is when a scrape was last written completely.
// Spans are settled after a complete scrape that contains them, and in doubt while such a scrape is being
// written (export.Scrapes).
//
// Messages and encoders are those of client_golang. Each series is written separately, in a message that is
// used again: constant metrics and promhttp keep all series as messages until the last byte is read, which
// takes twice as much memory as everything else here.
//
// Concurrency: any goroutine can call ServeHTTP and LastScrape; the rest is for the sealing goroutine.
//
// Limits: those of totals, and maxScrapes; Memory adds them up. A scrape that is not read ends after
// writeTimeout, and others wait for their turn until then.
package prometheus
