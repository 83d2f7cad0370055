package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/internal/export/dump"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
	"github.com/spf13/cobra"
)

func newDumpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dump FILE",
		Short: "Print a payload that the agent refused",
		Long: `Print a payload that the agent refused, as run keeps them in --debug-dir: the
agent's answer, the headers that we sent, and the payload with its origin, its
buckets, and of each group the counts and latencies. What can't be decoded is
named by its place in the payload.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			refusal, err := dump.Read(file)
			if err != nil {
				return err
			}
			return printRefusal(cmd.OutOrStdout(), refusal)
		},
	}
}

// printRefusal writes a refusal for a person. Text that came from outside is
// quoted, so that it can't act on a terminal.
func printRefusal(to io.Writer, r *dump.Refusal) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "refused  %s by %s\n", r.Time.UTC().Format("2006-01-02 15:04:05.000 MST"),
		printable(r.Agent))
	fmt.Fprintf(&b, "answer   %s: %q\n", printable(r.Status), r.Message)
	printHeaders(&b, r.Answer)
	fmt.Fprintf(&b, "sent     %d bytes for %d spans\n", len(r.Body), r.Spans)
	printHeaders(&b, r.Sent)
	payload, err := payload.Decode(r.Body)
	if err != nil {
		first := r.Body[:min(len(r.Body), 256)]
		fmt.Fprintf(&b, "\nThe payload can't be decoded: %s\nIt begins with\n%s", sanitize.Text(err.Error()),
			hex.Dump(first))
	} else {
		printPayload(&b, payload)
	}
	_, err = b.WriteTo(to)
	return err
}

func printHeaders(b *bytes.Buffer, header http.Header) {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		fmt.Fprintf(b, "         %s: %s\n", printable(name), printable(strings.Join(header[name], ", ")))
	}
}

func printPayload(b *bytes.Buffer, p *payload.Payload) {
	b.WriteString("origin  ")
	facts{b}.print(
		"host", p.Hostname, "env", p.Env, "version", p.Version, "service", p.Service, "lang", p.Lang,
		"tracer", p.TracerVersion, "runtime", p.RuntimeID, "commit", p.GitCommitSha, "process", p.ProcessTags,
	)
	fmt.Fprintf(b, "\n         payload %d\n", p.Sequence)
	for _, problem := range p.Problems() {
		fmt.Fprintf(b, "problem  %s\n", printable(problem))
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
	fmt.Fprintf(b, "\n  %s  %s  %s\n   ", printable(g.Service), printable(g.Name), printable(g.Resource))
	facts{b}.print(
		"type", g.Type, "kind", g.SpanKind, "status", nonZero(g.HTTPStatusCode), "grpc", g.GRPCStatusCode,
		"method", g.HTTPMethod, "endpoint", g.HTTPEndpoint, "source", g.ServiceSource,
		"root", [...]string{"", "yes", "no"}[max(0, g.IsTraceRoot)%3], "synthetics",
		map[bool]string{true: "yes"}[g.Synthetics],
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

// facts prints names with their values, those that have one.
type facts struct{ *bytes.Buffer }

func (f facts) print(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		switch name, value := pairs[i], pairs[i+1]; {
		case strings.Contains(value, " "):
			fmt.Fprintf(f, " %s=%q", name, value)
		case value != "":
			fmt.Fprintf(f, " %s=%s", name, printable(value))
		}
	}
}

func nonZero(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// printable is a text as it is, or quoted where it holds characters that are not printable.
func printable(text string) string {
	quoted := fmt.Sprintf("%q", text)
	if inner := quoted[1 : len(quoted)-1]; inner == text && text != "" {
		return text
	}
	return quoted
}
