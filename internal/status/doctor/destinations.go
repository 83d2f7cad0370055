package doctor

import (
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

const (
	// maxClockDiff is the maximum difference between clocks. The agent counts older buckets as current ones.
	maxClockDiff = 5 * time.Second
	// staleAfter is the time after which Prometheus considers a series stale.
	staleAfter = 5 * time.Minute
)

// destinations checks each destination: its state, unsent spans, queue and clock.
func (f *Findings) destinations(s *status.Status) {
	for i := range s.Destinations {
		d := &s.Destinations[i]
		about := "destination " + d.Name
		if d.Scraped == nil {
			f.state(about, d.URL, string(d.State), lastError(d.Flushes))
		} else {
			f.scraped(about, s, d)
		}
		f.reasons(Wrong, about, d.Books.UnsentBy, unsentFixes, "%d spans did not get there: %s")
		if d.Retry.MaxBytes > 0 && d.Retry.Bytes > d.Retry.MaxBytes/2 {
			f.add(Wrong, about, "see why it does not take them, or raise --retry-bytes",
				"%d payloads wait in more than half of --retry-bytes, the oldest for %.0f s",
				d.Retry.Payloads, d.Retry.OldestSeconds)
		}
		f.clock(about, d.Clock)
	}
}

// state reports the state of a push destination or an upstream.
func (f *Findings) state(about, url, state, lastErr string) {
	if lastErr != "" {
		lastErr = ": " + lastErr
	}
	switch state {
	case "takes":
		f.ok(about, "%s took what was sent to it last", url)
	case "silent":
		f.add(Wrong, about, "see whether it runs, and whether the address is right", "%s does not answer%s",
			url, lastErr)
	case "looked_for":
		f.add(Notice, about, "give --agent-url where there is one, or another destination, or off",
			"nobody named an agent, and none is found at %s", url)
	default:
		f.add(Wrong, about, "have it take statistics: an old agent does not, nor one that has them off",
			"%s answers, and takes nothing%s", url, lastErr)
	}
}

// lastError returns the error of the last payload that a destination did not accept.
func lastError(flushes []export.Flush) string {
	for i := len(flushes) - 1; i >= 0; i-- {
		if text := strings.TrimSpace(flushes[i].LastError); text != "" {
			return text
		}
	}
	return ""
}

// scraped checks when a destination was last scraped.
func (f *Findings) scraped(about string, s *status.Status, d *status.DestinationStatus) {
	since, message := s.At.Sub(d.Scraped.Last), "it was scraped %.0f s ago"
	if d.Scraped.Last.IsZero() {
		since, message = s.At.Sub(s.Started), "nobody has scraped it since the start, %.0f s ago"
	}
	if since > staleAfter {
		f.add(Wrong, about, "have a Prometheus scrape "+d.URL+" at --prometheus-addr or --http-addr", message,
			since.Seconds())
		return
	}
	f.ok(about, message, since.Seconds())
}

// clock checks the difference between a destination's clock and the daemon's.
func (f *Findings) clock(about string, c *status.Clock) {
	if c == nil {
		return
	}
	if ahead := time.Duration(c.AheadSeconds * float64(time.Second)); ahead.Abs() > maxClockDiff {
		f.add(Wrong, about, "set both clocks by NTP; until then statistics lie in other buckets than traces",
			"its clock differs by %.0f s from the daemon's", c.AheadSeconds)
		return
	}
	f.ok(about, "its clock is the daemon's within %.0f s", maxClockDiff.Seconds())
}
