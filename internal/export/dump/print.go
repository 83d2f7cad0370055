package dump

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// Print writes a refused payload and the agent's response as text. It escapes control characters, so
// that the printed text cannot control a terminal.
func (r *Refusal) Print(to io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "refused  %s by %s\n", r.Time.UTC().Format("2006-01-02 15:04:05.000 MST"), r.Agent)
	fmt.Fprintf(&b, "answer   %s: %q\n", r.Status, r.ResponseBody)
	printHeaders(&b, r.ResponseHeader)
	fmt.Fprintf(&b, "sent     %d bytes for %d spans\n", len(r.RequestBody), r.Spans)
	printHeaders(&b, r.RequestHeader)
	decoded, err := payload.Decode(r.RequestBody)
	if err != nil {
		const maxPrintedBytes = 256
		beginning := r.RequestBody[:min(len(r.RequestBody), maxPrintedBytes)]
		fmt.Fprintf(&b, "\nThe payload can't be decoded: %s\nIt begins with\n%s",
			sanitize.Text(err.Error()), hex.Dump(beginning))
	} else {
		printPayload(&b, decoded)
	}
	_, err = io.WriteString(to, sanitize.Lines(b.String()))
	return err
}

func printHeaders(b *bytes.Buffer, header http.Header) {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		fmt.Fprintf(b, "         %s: %s\n", name, strings.Join(header[name], ", "))
	}
}

// printPayload prints the origin of a payload, problems that the agent could have with it, and all of its groups.
func printPayload(b *bytes.Buffer, p *payload.Payload) {
	b.WriteString("origin  ")
	printFields(
		b, "host", p.Hostname, "env", p.Env, "version", p.Version, "service", p.Service, "lang", p.Lang,
		"tracer", p.TracerVersion, "runtime", p.RuntimeID, "commit", p.GitCommitSha, "process", p.ProcessTags,
	)
	fmt.Fprintf(b, "\n         payload %d\n", p.Sequence)
	for _, problem := range p.Problems() {
		fmt.Fprintf(b, "problem  %s\n", sanitize.Text(problem))
	}
	for _, bucket := range p.Stats {
		fmt.Fprintf(b, "\nbucket   %s, %v, groups %d\n",
			time.Unix(0, int64(bucket.Start)).UTC().Format("2006-01-02 15:04:05 MST"),
			time.Duration(bucket.Duration), len(bucket.Stats))
		for i := range bucket.Stats {
			printGroup(b, &bucket.Stats[i])
		}
	}
}

// printGroup prints the labels, counts and latencies of one group of a payload.
func printGroup(b *bytes.Buffer, g *payload.Group) {
	fmt.Fprintf(b, "\n  %s  %s  %s\n   ", quoteIfNeeded(g.Service), quoteIfNeeded(g.Name), quoteIfNeeded(g.Resource))
	printFields(
		b, "type", g.Type, "kind", g.SpanKind, "status", httpStatusText(g.HTTPStatusCode),
		"grpc", g.GRPCStatusCode, "method", g.HTTPMethod, "endpoint", g.HTTPEndpoint, "source", g.ServiceSource,
		"root", traceRootText(g.IsTraceRoot), "synthetics", yesIf(g.Synthetics),
		"peers", strings.Join(g.PeerTags, ","), "tags", strings.Join(g.AdditionalMetricTags, ","),
	)
	fmt.Fprintf(b, "\n    hits %d, errors %d, top-level %d, in all %v\n", g.Hits, g.Errors, g.TopLevelHits,
		time.Duration(g.Duration))
	ok, failed, err := g.Latencies()
	if err != nil {
		fmt.Fprintf(b, "    sketches: %s\n", sanitize.Text(err.Error()))
		return
	}
	printLatency(b, "ok", ok, len(g.OkSummary))
	printLatency(b, "failed", failed, len(g.ErrorSummary))
}

// printLatency prints the number of spans in a sketch, and some percentiles if there are any. name is "ok" or "failed", and
// size the length of the encoded sketch.
func printLatency(b *bytes.Buffer, name string, l payload.Latency, size int) {
	fmt.Fprintf(b, "    %-6s %g spans in %d bytes", name, l.Count, size)
	if l.Count > 0 {
		fmt.Fprintf(b, ": min %v, p50 %v, p99 %v, max %v",
			roundToMicros(l.Min), roundToMicros(l.P50), roundToMicros(l.P99), roundToMicros(l.Max))
	}
	b.WriteByte('\n')
}

func roundToMicros(nanoseconds float64) time.Duration {
	return time.Duration(nanoseconds).Round(time.Microsecond)
}

// printFields prints alternating names and values as name=value. It omits empty values. It quotes values with spaces or
// characters that are not printable.
func printFields(b *bytes.Buffer, namesAndValues ...string) {
	for pair := range slices.Chunk(namesAndValues, 2) {
		name, value := pair[0], pair[1]
		if value == "" {
			continue
		}
		fmt.Fprintf(b, " %s=%s", name, quoteFieldIfNeeded(value))
	}
}

// quoteFieldIfNeeded is like quoteIfNeeded, but also quotes a text with spaces, because spaces separate fields.
func quoteFieldIfNeeded(text string) string {
	if strings.Contains(text, " ") {
		return strconv.Quote(text)
	}
	return quoteIfNeeded(text)
}

// quoteIfNeeded returns a text in quotes if it is empty or contains a character that must be escaped.
// Otherwise it returns the text unchanged.
func quoteIfNeeded(text string) string {
	quoted := strconv.Quote(text)
	hasEscapes := quoted != `"`+text+`"`
	if text == "" || hasEscapes {
		return quoted
	}
	return text
}

// httpStatusText returns an HTTP status as text, or "" for 0, which means that the group has none.
func httpStatusText(status uint32) string {
	if status == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(status), 10)
}

// traceRootText returns a text for a value of Trilean, an enumeration in Datadog's protobuf messages: "yes" for
// true, "no" for false, and "" for any other value.
func traceRootText(isTraceRoot int32) string {
	const trileanTrue, trileanFalse = 1, 2
	switch isTraceRoot {
	case trileanTrue:
		return "yes"
	case trileanFalse:
		return "no"
	}
	return ""
}

// yesIf returns "yes" if isTrue is true, and otherwise "".
func yesIf(isTrue bool) string {
	if isTrue {
		return "yes"
	}
	return ""
}
