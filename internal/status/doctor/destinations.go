package doctor

import (
	"fmt"
	"math"
	"slices"
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

// checkDestinations checks each destination: its state, unsent spans, retry queue and clock.
func (f *Findings) checkDestinations(s *status.Status) {
	if len(s.Destinations) == 0 {
		f.add(Wrong, "destinations", "set --prometheus, --otlp-metrics-endpoint or --agent-url",
			"the daemon exports to no destination")
	}
	for i := range s.Destinations {
		d := &s.Destinations[i]
		subject := "destination " + d.Name
		if d.Scraped == nil {
			f.checkState(subject, d.URL, d.State, lastError(d.Flushes))
		} else {
			f.checkScrape(subject, s, d)
		}
		f.addReasons(Wrong, subject, d.Accounting.UnsentBy, unsentFixes, "%d counted spans could not be sent: %s")
		hasQueue := d.Retry.MaxBytes > 0
		if hasQueue && d.Retry.Bytes > d.Retry.MaxBytes/2 {
			f.add(Wrong, subject, "make the destination accept payloads, or raise --retry-bytes",
				"%d payloads are queued and use more than half of --retry-bytes, the oldest for %.0f s",
				d.Retry.Payloads, d.Retry.OldestSeconds)
		}
		f.checkClock(subject, d.Clock)
	}
}

// checkState adds a finding about the state of a server to which the daemon sends statistics or forwards
// requests. lastErr is the error of the last request, or "" if there was none.
func (f *Findings) checkState(subject, url string, state export.State, lastErr string) {
	errSuffix := ""
	if lastErr != "" {
		errSuffix = ": " + lastErr
	}
	switch state {
	case export.StateAccepting:
		f.ok(subject, "%s accepted the last request, or got none yet", url)
	case export.StateUnreachable:
		f.add(Wrong, subject, "check whether it is running, and whether the address is correct", "%s does not respond%s",
			url, errSuffix)
	case export.StateDiscovering:
		f.add(Notice, subject, "set --agent-url to the address of the agent, or to off if there is none",
			"no agent was found at %s, and none is configured", url)
	default:
		f.add(Wrong, subject, "read its log; an agent must be recent enough to accept statistics, and have them enabled",
			"%s responds, but rejected the last request%s", url, errSuffix)
	}
}

// lastError returns the last error in a list of flushes, or "" if all flushes succeeded.
func lastError(flushes []export.Flush) string {
	for _, flush := range slices.Backward(flushes) {
		if text := strings.TrimSpace(flush.LastError); text != "" {
			return text
		}
	}
	return ""
}

// checkScrape adds a finding about the time since the last scrape, or since the start of the daemon if there
// was none. A long time is wrong, because Prometheus drops series that it has not scraped for staleAfter.
func (f *Findings) checkScrape(subject string, s *status.Status, d *status.DestinationStatus) {
	age := s.At.Sub(d.Scraped.Last)
	message := fmt.Sprintf("the last scrape was %.0f s ago", age.Seconds())
	wasNeverScraped := d.Scraped.Last.IsZero()
	if wasNeverScraped {
		age = s.At.Sub(s.Started)
		message = fmt.Sprintf("no scrape since the start, %.0f s ago", age.Seconds())
	}
	if age > staleAfter {
		f.Add(Wrong, subject, "add a scrape job to Prometheus for "+d.URL+" at the address of --prometheus-addr or --http-addr",
			message)
		return
	}
	f.Add(OK, subject, "", message)
}

// checkClock adds a finding about the difference between the clocks of a destination and of the daemon.
// It does nothing if c is nil, which means that the difference has not been measured.
func (f *Findings) checkClock(subject string, c *status.Clock) {
	if c == nil {
		return
	}
	if math.Abs(c.AheadSeconds) > maxClockDiff.Seconds() {
		f.add(Wrong, subject, "synchronize both clocks, for example with NTP; until then, statistics and traces of the same "+
			"request have different times", "the clock of the destination differs by %.0f s from the clock of the daemon",
			c.AheadSeconds)
		return
	}
	f.ok(subject, "the clock of the destination differs by at most %.0f s from the clock of the daemon",
		maxClockDiff.Seconds())
}
