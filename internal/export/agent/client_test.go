package agent

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

func clientOf(t *testing.T, url string) *httpClient {
	t.Helper()
	u, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return newHTTPClient(u, "1.0")
}

func socketIn(t *testing.T) string { return filepath.Join(t.TempDir(), "a.sock") }

// addressOf returns the address of a socket, or "" for any free port.
func addressOf(t *testing.T, network string) string {
	if network == "unix" {
		return socketIn(t)
	}
	return ""
}

// spansIn returns the number of spans in the sketches of a payload.
func spansIn(t *testing.T, r received) (spans uint64) {
	t.Helper()
	for _, bucket := range r.payload.Stats {
		for i := range bucket.Stats {
			ok, failed, err := bucket.Stats[i].Latencies()
			if err != nil {
				t.Error(err)
			}
			spans += uint64(ok.Count + failed.Count)
		}
	}
	return spans
}

// some is a payload whose content does not matter.
func some() *export.Payload { return &export.Payload{Body: make([]byte, 600)} }

// A decoder as strict as the real agent accepts the daemon's payloads.
func TestFlush_ToAgent(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			payloads := make(chan received, 2)
			agent := startAgent(t, addressOf(t, network), func(r received) { payloads <- r })
			url, err := ParseURL(agent.url)
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(Config{URL: url, Version: "1.0"})
			if err != nil {
				t.Fatal(err)
			}
			f := start(t, export.Config{}, e)
			sealed := testcycle.Golden()
			spans := sealed.Spans()
			f.Accept(sealed)
			if err := sealed.Delivery.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			full, bare := <-payloads, <-payloads // sent concurrently, in either order
			if full.payload.Service == "" {
				full, bare = bare, full
			}
			checkHeaders(t, full, bare)
			problems := append(full.payload.Problems(), bare.payload.Problems()...)
			if arrived := spansIn(t, full) + spansIn(t, bare); len(problems) != 0 || arrived != spans {
				t.Errorf("%d of %d spans arrived, and there are problems %q", arrived, spans, problems)
			}
			if s := balanced(t, f, spans); s.Flushed != spans {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func checkHeaders(t *testing.T, full, bare received) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Type":                  "application/msgpack",
		"Content-Length":                fmt.Sprint(len(full.body)),
		"User-Agent":                    "spanstatsd/1.0",
		"Datadog-Meta-Lang":             "java",
		"Datadog-Meta-Lang-Version":     "17",
		"Datadog-Meta-Lang-Interpreter": "OpenJDK",
		"Datadog-Meta-Tracer-Version":   "1.50.0", "Datadog-Container-Id": "cid", "Datadog-Entity-Id": "in-7",
		"Datadog-External-Env": "it-false", "Datadog-Obfuscation-Version": "1",
		"Content-Encoding": "", "Accept-Encoding": "", "Idempotency-Key": "",
	} {
		if got := full.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name := range bare.header {
		if strings.HasPrefix(name, "Datadog-") {
			t.Errorf("an empty origin sent %s", name)
		}
	}
}

func TestHeaders_UnusualOrigin(t *testing.T) {
	agent := startAgent(t, "", nil)
	p := &export.Payload{
		Body: mustEncode(t, testcycle.Spans(1), export.MinPayloadBytes)[0].Body,
		Origin: span.Origin{
			Lang: "go\r\nX-Evil: 1", ContainerID: "\x00\x7f", EntityID: " caf\u00e9 ",
		},
	}
	if got := clientOf(t, agent.url).deliver(t.Context(), p); got.Outcome != export.OutcomeAccepted {
		t.Errorf("%+v", got)
	}
	if agent.payloads.Load() != 1 {
		t.Error("the payload did not arrive")
	}
}

func TestStatus_DecidesRetry(t *testing.T) {
	for status, want := range map[int]export.Outcome{
		200: export.OutcomeAccepted,
		202: export.OutcomeAccepted,
		301: export.OutcomeRefused,
		400: export.OutcomeRefused,
		401: export.OutcomeRefused,
		403: export.OutcomeRefused,
		404: export.OutcomeNotWanted,
		408: export.OutcomeNotYet,
		413: export.OutcomeRefused,
		429: export.OutcomeNotYet,
		500: export.OutcomeNotYet,
		502: export.OutcomeNotYet,
		503: export.OutcomeNotYet,
	} {
		agent := startAgent(t, "", nil)
		agent.fault = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Datadog-Agent-State", "s")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}
		got := clientOf(t, agent.url).deliver(t.Context(), some())
		if got.Outcome != want || (got.Err == nil) != (want == export.OutcomeAccepted) || stateOf(got) != "s" {
			t.Errorf("%d: %+v, want export.Outcome %d", status, got, want)
		}
		if waits := got.After == 7*time.Second; waits != (want == export.OutcomeNotYet) {
			t.Errorf("%d: wait %v", status, got.After)
		}
	}
}

func TestInfo_OverHTTP(t *testing.T) {
	agent := startAgent(t, "", nil)
	client := clientOf(t, agent.url)
	got, err := client.readInfo(t.Context())
	if err != nil || !got.features.Stats || got.features.ObfuscationVersion != 1 ||
		len(got.features.PeerTags) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	body := mustEncode(t, testcycle.Spans(1), export.MinPayloadBytes)[0].Body
	if answer := client.deliver(t.Context(), &export.Payload{Body: body}); stateOf(answer) != got.state ||
		got.state == "" {
		t.Errorf("the answer's state is %q, /info hashes to %q", stateOf(answer), got.state)
	}
	agent.fault = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }
	if got, err := client.readInfo(t.Context()); err != nil || got.features.Stats {
		t.Errorf("404: %+v, %v", got, err)
	}
	agent.fault = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
	if _, err := client.readInfo(t.Context()); err == nil {
		t.Error("a 500 response was accepted as info")
	}
}

func TestInfo_IsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"version": "`))
		_, _ = w.Write(bytes.Repeat([]byte("x"), 2*maxInfoBytes))
		_, _ = w.Write([]byte(`"}`))
	}))
	defer server.Close()
	if _, err := clientOf(t, server.URL).readInfo(t.Context()); err == nil {
		t.Error("two megabytes were read")
	}
}
