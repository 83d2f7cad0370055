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
	fmt.Fprintf(&b, "answer   %s: %q\n", r.Status, r.Message)
	printHeaders(&b, r.Answer)
	fmt.Fprintf(&b, "sent     %d bytes for %d spans\n", len(r.Body), r.Spans)
	printHeaders(&b, r.Sent)
	payload, err := payload.Decode(r.Body)
	if err != nil {
		fmt.Fprintf(&b, "\nThe payload can't be decoded: %s\nIt begins with\n%s", sanitize.Text(err.Error()),
			hex.Dump(r.Body[:min(len(r.Body), 256)]))
	} else {
		printPayload(&b, payload)
	}
	_, err = io.WriteString(to, sanitize.Lines(b.String()))
	return err
}

func printHeaders(b *bytes.Buffer, header http.Header) {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		fmt.Fprintf(b, "         %s: %s\n", name, strings.Join(header[name], ", "))
	}
}

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

func printGroup(b *bytes.Buffer, g *payload.Group) {
	fmt.Fprintf(b, "\n  %s  %s  %s\n   ", quoteIfNeeded(g.Service), quoteIfNeeded(g.Name), quoteIfNeeded(g.Resource))
	printFields(
		b, "type", g.Type, "kind", g.SpanKind, "status", strings.TrimLeft(fmt.Sprint(g.HTTPStatusCode), "0"),
		"grpc", g.GRPCStatusCode, "method", g.HTTPMethod, "endpoint", g.HTTPEndpoint, "source", g.ServiceSource,
		"root", [...]string{"", "yes", "no"}[max(0, g.IsTraceRoot)%3],
		"synthetics", map[bool]string{true: "yes"}[g.Synthetics],
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

func printLatency(b *bytes.Buffer, name string, l payload.Latency, size int) {
	fmt.Fprintf(b, "    %-6s %g spans in %d bytes", name, l.Count, size)
	if l.Count > 0 {
		short := func(ns float64) time.Duration { return time.Duration(ns).Round(time.Microsecond) }
		fmt.Fprintf(b, ": min %v, p50 %v, p99 %v, max %v", short(l.Min), short(l.P50), short(l.P99),
			short(l.Max))
	}
	b.WriteByte('\n')
}

// printFields prints alternating names and values as name=value. It omits empty values, and quotes
// those with spaces or characters that are not printable.
func printFields(b *bytes.Buffer, namesAndValues ...string) {
	for pair := range slices.Chunk(namesAndValues, 2) {
		name, value := pair[0], pair[1]
		switch {
		case value == "":
		case strings.Contains(value, " "):
			fmt.Fprintf(b, " %s=%q", name, value)
		default:
			fmt.Fprintf(b, " %s=%s", name, quoteIfNeeded(value))
		}
	}
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
