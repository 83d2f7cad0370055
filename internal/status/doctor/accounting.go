package doctor

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// sum returns the sum of all counts.
func sum(counts map[string]uint64) (total uint64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// checkAccounting adds findings about whether the numbers of spans balance. It also adds findings about dropped spans,
// spans that clients have lost, spans that are counted with a replaced label value, and spans that end in the future.
func (f *Findings) checkAccounting(s *status.Status) {
	const subject = "accounting"
	f.checkBalances(subject, s)
	f.checkDroppedSpans(subject, s.Accounting.Dropped)
	f.addReasons(Wrong, subject, s.ClientLost, lostFixes, "%d spans were lost in native clients, as they report: %s")
	f.checkReplacedLabels(subject, s)
	f.checkValues(subject, &s.Accounting.Values)
	if s.Early > 0 {
		f.add(Notice, subject, "synchronize the clocks of the senders, for example with NTP",
			"%d received spans end in the future", s.Early)
	}
}

// checkBalances adds a finding about whether every received span was counted or dropped, and one about whether
// each destination accounts for all counted spans.
func (f *Findings) checkBalances(subject string, s *status.Status) {
	spans := &s.Accounting
	dropped := sum(spans.Dropped)
	f.checkBalance(subject, s, spans.Received, spans.Aggregated+dropped,
		"%d spans received = %d counted + %d dropped (%d of them ignored by --ignore)",
		spans.Received, spans.Aggregated, dropped, spans.Dropped["ignored"])
	for i := range s.Destinations {
		d := &s.Destinations[i].Accounting
		unsent := sum(d.UnsentBy)
		// The text omits BeforeDiscovery, which is 0 unless the destination is auto-discovered.
		accounted := d.Flushed + unsent + d.Pending + d.BeforeDiscovery
		f.checkBalance(subject, s, spans.Aggregated, accounted,
			"of %d counted spans, the destination %s accepted %d; %d could not be sent, and %d are pending",
			spans.Aggregated, s.Destinations[i].Name, d.Flushed, unsent, d.Pending)
	}
}

// checkDroppedSpans adds a finding for each reason for which received spans were not counted.
func (f *Findings) checkDroppedSpans(subject string, dropped map[string]uint64) {
	f.addReasons(Wrong, subject, dropped, droppedFixes, "%d received spans were dropped: %s")
	if spans := dropped["left_to_agent"]; spans > 0 {
		f.add(Notice, subject, "no fix is needed for the totals; the findings about the receiver apm have the reasons",
			"%d received spans were forwarded without being counted, so that the agent counts them", spans)
	}
}

// checkValues adds a finding about values of --measure that could not be counted.
func (f *Findings) checkValues(subject string, values *status.ValueAccounting) {
	if values.Refused > 0 {
		f.add(Wrong, subject, "see the line in the log, which names the attribute and the reason",
			"%d values of the attributes in --measure are not counted", values.Refused)
	}
	if values.Received > 0 && values.Received == values.Aggregated+values.Dropped {
		f.ok(subject, "%d values received = %d counted + %d dropped with their spans", values.Received, values.Aggregated,
			values.Dropped)
	}
}

// checkReplacedLabels adds a finding for each label with too many distinct values. The daemon counts spans with further
// values under one common value.
func (f *Findings) checkReplacedLabels(subject string, s *status.Status) {
	f.checkLabelBudgets(subject, s)
	replacedSpans := s.Collapsed // by label
	for _, label := range sortedNonZero(replacedSpans) {
		f.add(Notice, subject, cardinalityFix(label),
			"%d spans are counted with a replaced %s, because it has too many distinct values", replacedSpans[label], label)
	}
}

// cardinalityFix returns the fix for a label with too many distinct values. The name "whole_key" stands for
// all labels together, and "origin" for the attributes of the sender.
func cardinalityFix(label string) string {
	switch label {
	case "whole_key":
		return "raise --max-aggregates and --label-bytes"
	case "origin":
		return "raise --max-origins, or list fewer attributes in --otlp-resource-attributes"
	}
	return "shorten the values in the application, or raise --cardinality-limit " + label + "=N"
}

// checkBalance adds a finding about whether two numbers of spans are equal: total, and accounted, the sum of
// its parts. sumFormat and sumArgs describe the sum in words. Missing spans are only a notice if they can be
// in rings, the queues in front of the aggregation.
func (f *Findings) checkBalance(subject string, s *status.Status, total, accounted uint64, sumFormat string, sumArgs ...any) {
	sumText := fmt.Sprintf(sumFormat, sumArgs...)
	missing := int64(total) - int64(accounted) // negative if too many are accounted for
	allRingSlots := int64(s.Partitions.Slots)
	switch {
	case missing == 0:
		f.ok(subject, "%s", sumText)
	case missing > 0 && missing <= allRingSlots:
		f.add(Notice, subject, "no fix is needed while spans arrive; if the number stays without traffic, report a bug",
			"%s, and %d are in transit", sumText, missing)
	default:
		f.add(Wrong, subject, reportBug, "the accounting does not balance: %s", sumText)
	}
}

const reportBug = "report a bug, with the log of the daemon"

// requestFixes are fixes for requests that were not counted, by result.
var requestFixes = map[string]string{
	"unparsable": "fix the sender, whose request body is invalid; the log of the daemon has the position",
	"no_room":    "give the daemon more CPU or memory, or raise --ring-slots: there was no capacity to count it",
	"too_many":   "raise --ring-slots, or lower the batch size of the sender: it has more spans than a ring has slots",
	"too_large":  "raise the --...-max-body and --...-max-body-bytes of the receiver, or lower the batch size of the sender",
	"busy":       "give the daemon more CPU: all workers of the receiver were busy",
	"not_wanted": "enable statistics in the agent: it does not accept any",
	"refused":    "correct the endpoint and the protocol of the sender: its path, method or headers are not accepted here",
	"bug":        reportBug,
}

const clientFix = "fix the client, which violates the protocol; `spanstatsd-lab check-client` finds the position"

// unsentFixes are fixes for spans in abandoned payloads, by reason.
var unsentFixes = map[string]string{
	"expired":     "make the destination reachable, or raise --retry-age: it did not accept the payload in time",
	"queue_full":  "make the destination reachable, or raise --retry-bytes: the queue was full",
	"rejected":    "read the log of the destination: it rejected the payload",
	"ambiguous":   "check the load of the destination: it got a complete payload and did not respond, so it may have the spans",
	"not_wanted":  "enable statistics in the destination: it does not accept any",
	"shutdown":    "raise --shutdown-grace, and terminationGracePeriodSeconds with it",
	"unencodable": reportBug,
}

// droppedFixes are fixes for spans that were received and not counted, by reason.
var droppedFixes = map[string]string{
	"ring_full":       "give the daemon more CPU, or raise --drainers or --ring-slots: the drainers could not keep up",
	"over_share":      "give the daemon more CPU, or raise --ring-slots: one sender sends more than its share",
	"malformed":       clientFix,
	"batch_too_large": requestFixes["too_many"],
	"not_wanted":      requestFixes["not_wanted"],
	"refused": "see the findings about the receivers socket and zipkin: the connection was rejected, or there was no " +
		"capacity for a Zipkin request",
	"ring_contended": reportBug,
	"bug":            reportBug,
	"shutdown":       unsentFixes["shutdown"],
}

// lostFixes are fixes for spans that clients have lost, by reason.
var lostFixes = map[string]string{
	"buffer_full": "give the daemon more CPU, or the client a larger buffer: the daemon was slower than the client",
	"closed":      "close the client before the application exits, so that it sends its buffer",
	"daemon_died": "find out why the daemon crashed or was killed; the client could not keep all spans until the next one",
	"ambiguous":   "find out why the daemon crashed or was killed; a destination may have these spans",
	"disconnected": "start the daemon before the application, as an init container with restartPolicy Always: there was " +
		"no daemon for too long",
	"too_large":  "shorten the labels in the application: a span is larger than a message of the protocol may be",
	"not_wanted": requestFixes["not_wanted"],
	"other":      "read the log of the client",
}
