package datadog_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/sampling/unsampled"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/traces"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func recordedBody(t testing.TB, format string) []byte {
	t.Helper()
	f, err := os.Open("../../../lab/bench/testdata/" + format + ".http.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.ReadRequest(bufio.NewReader(unpacked))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

var now = func() time.Time { return time.Unix(1_700_000_000, 7) }

func oldOutcome(c *traces.Counter, format traces.Format, body []byte, lang string, top bool, p *traces.Policy) (all []string) {
	if c.Count(format, body, lang, top, p) != nil {
		return []string{"unread"}
	}
	for service, message := range c.Batches {
		walker, _ := wire.WalkSpans(message)
		for s := (wire.Snapshot{}); walker.Next(&s); {
			all = append(all, fmt.Sprintf("%s %q %d %d %v %d", service, s.Key, s.Duration, s.End, s.Weight, s.Flags))
		}
	}
	all = append(all, fmt.Sprintf("%+v", c.Origin(span.Origin{Lang: "said", ContainerID: "c", EntityID: "e"})))
	for _, k := range c.Kept() {
		h, l, s := c.IDs(k)
		all = append(all, fmt.Sprint(k.Batch, k.At, h, l, s))
	}
	left, tr, sp := c.Cut(body)
	return append(all, fmt.Sprintf("%x %d %d", left, tr, sp))
}

func newOutcome(c *datadog.Counter, format decode.Format, body []byte, lang string, top bool, p *datadog.Policy) (all []string) {
	if c.Count(format, body, lang, top, p) != nil {
		return []string{"unread"}
	}
	for service, batch := range c.Batches {
		for i := range batch.Snapshots {
			s := &batch.Snapshots[i]
			all = append(all, fmt.Sprintf("%s %q %d %d %v %d", service, batch.KeyOf(s), s.Duration, s.End, s.Weight, s.Flags))
		}
	}
	all = append(all, fmt.Sprintf("%+v", c.Origin(span.Origin{Lang: "said", ContainerID: "c", EntityID: "e"})))
	for _, k := range c.Kept() {
		h, l, s := c.IDs(k)
		all = append(all, fmt.Sprint(k.Batch, k.At, h, l, s))
	}
	left, tr, sp := unsampled.Cut(c.Decoded())
	return append(all, fmt.Sprintf("%x %d %d", left, tr, sp))
}

func TestAsBefore(t *testing.T) {
	type bodyIn struct {
		format decode.Format
		body   []byte
	}
	var bodies []bodyIn
	for _, f := range examples {
		bodies = append(bodies, bodyIn{f.format, f.body(t, 20)})
	}
	bodies = append(bodies, bodyIn{decode.FormatV04, recordedBody(t, "v0.4")}, bodyIn{decode.FormatV05, recordedBody(t, "v0.5")}, bodyIn{decode.FormatV1, recordedBody(t, "v1.0")})
	var olds []*traces.Policy
	var news []*datadog.Policy
	for _, ofTracer := range []bool{false, true} {
		kinds, ignore := []string{"client", "consumer", "producer", "server"}, []string{"GET /route/3$"}
		o, _ := traces.NewPolicy(agentPeerTags, kinds, ignore, traces.Labels{OfTracer: ofTracer, AdditionalTags: []string{"language", "component"}, RenamesResources: true, TraceIDs: true})
		n, _ := datadog.NewPolicy(agentPeerTags, kinds, ignore, datadog.Labels{OfTracer: ofTracer, AdditionalTags: []string{"language", "component"}, RenamesResources: true, TraceIDs: true})
		olds, news = append(olds, o), append(news, n)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	oc, nc := traces.NewCounter(), datadog.NewCounter()
	oc.Now, nc.Now = now, now
	read, unread := 0, 0
	rounds := 1500
	for round := range rounds {
		b := bodies[round%len(bodies)]
		body := bytes.Clone(b.body)
		if round >= 2*len(bodies)*5 {
			for range 1 + rnd.IntN(3) {
				switch at := rnd.IntN(len(body)); rnd.IntN(4) {
				case 0:
					body[at] = byte(rnd.Uint32())
				case 1:
					body[at] ^= 1 << rnd.IntN(8)
				case 2:
					n := min(rnd.IntN(20), len(body)-at)
					copy(body[at:], body[rnd.IntN(len(body)-n):][:n])
				case 3:
					if rnd.IntN(4) == 0 {
						body = body[:at+1]
					} else {
						body[at] = []byte{0xc0, 0xc1, 0xa0, 0x80, 0x90, 0xd9, 0xcb, 0, 0xff}[rnd.IntN(9)]
					}
				}
			}
		}
		which := round / len(bodies) % 2
		lang := []string{"go", "python", "nodejs", "java", "ruby"}[round/len(bodies)/2%5]
		top := round%3 == 0
		want := oldOutcome(oc, traces.Format(b.format), bytes.Clone(body), lang, top, olds[which])
		got := newOutcome(nc, b.format, body, lang, top, news[which])
		if len(got) == len(want) { // the old room wrote over a base service that it had mended
			for i := range got {
				if strings.Contains(got[i], "\ufffd") {
					_, got[i], _ = strings.Cut(got[i], " ")
					_, want[i], _ = strings.Cut(want[i], " ")
				}
			}
		}
		if !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("round %d %v %s %v: \n%s\n%s", round, b.format, lang, which, got[i], want[i])
					break
				}
			}
			t.Fatalf("round %d %v %s: %d %d", round, b.format, lang, len(got), len(want))
		}
		if len(want) == 1 {
			unread++
		} else {
			read++
		}
		if rnd.IntN(50) == 0 {
			oc = oc.Next()
			oc.Now = now
			nc.Release()
		}
	}
	t.Log(read, unread)
}
