// Package prometheus is an exporter of package flush that sends nothing: it adds what cycles
// count to running totals, and whoever scrapes it reads those.
//
//	sealing goroutine                               a scrape
//	  points of the rows, by package points           take the last generation
//	  add them to the totals, by package totals       write it, one series after the other
//	  publish a generation  ---- one pointer ---->
//
// A generation is all series as they stood at the end of a cycle. It never changes, so a scrape
// takes no lock that the flush needs, and says a whole number of cycles. Series that a cycle has
// not counted share their records with the generation before. One that nobody has counted for
// Limits.Idle is not shown, and begins anew when it is counted.
//
// A series is told apart by its labels alone: two processes of one service are one series.
//
// To the books spans are flushed when a total has them that can be scraped. Whether somebody did
// LastScrape says. Tracers are told that they are settled when a scrape was written whole that has
// them; while one is under way they are doubtful, see flush.Unread.
//
// Messages and encoders are client_golang's. Each series is written by itself, in a message that
// is filled again: constant metrics and promhttp hold all series as messages until the last byte
// is read, which takes twice as much memory as all else here.
//
// Threading: ServeHTTP and LastScrape are anybody's, the rest is the sealing goroutine's.
//
// Bounds: the Limits of totals, and mostScrapes; Memory says what they come to. A scrape that is
// not read ends after scrapeTime; until then others wait for their turn.
package prometheus
