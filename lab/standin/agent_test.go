package standin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"
)

func startAgent(t *testing.T, cfg Config) *Agent {
	t.Helper()
	a, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// client returns an HTTP client for the agent's URL, over TCP or a Unix socket.
func client(a *Agent) *http.Client {
	path, unix := strings.CutPrefix(a.URL(), "unix://")
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if unix {
				network, address = "unix", path
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
}

func request(t *testing.T, a *Agent, path string, body []byte) (*http.Response, string, error) {
	t.Helper()
	base := a.URL()
	if strings.HasPrefix(base, "unix:") {
		base = "http://agent"
	}
	resp, err := client(a).Post(base+path, "application/msgpack", bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	return resp, string(said), err
}

func post(t *testing.T, a *Agent, body []byte) (status int, said string) {
	t.Helper()
	resp, said, err := request(t, a, "/v0.6/stats", body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, said
}

// summary returns a sketch of durations, encoded by the library.
func summary(t *testing.T, nanoseconds ...float64) []byte {
	t.Helper()
	s := payload.NewSketch()
	for _, ns := range nanoseconds {
		if err := s.Add(ns); err != nil {
			t.Fatal(err)
		}
	}
	return encoded(t, s.ToProto())
}

func otherMapping(t *testing.T) []byte {
	s, err := ddsketch.LogCollapsingLowestDenseDDSketch(0.02, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return encoded(t, s.ToProto())
}

func farBin(t *testing.T) []byte {
	message := payload.NewSketch().ToProto()
	message.PositiveValues.BinCounts = map[int32]float64{1 << 30: 1}
	return encoded(t, message)
}

func encoded(t *testing.T, message proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func goodGroup(t *testing.T) object {
	return object{
		"Service":      "web",
		"Name":         "http.request",
		"Resource":     "GET /",
		"Hits":         3,
		"Errors":       1,
		"TopLevelHits": 2,
		"Duration":     6000, "OkSummary": summary(t, 1000, 2000), "ErrorSummary": summary(t, 3000),
	}
}

func with(group object, name string, value any) object {
	group[name] = value
	return group
}

func TestAgent_CountsAccepted(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			var received []Received
			cfg := Config{Network: network, OnPayload: func(r Received) { received = append(received, r) }}
			if network == "unix" {
				cfg.Address = filepath.Join(t.TempDir(), "agent.sock")
			}
			a := startAgent(t, cfg)
			body := payloadOf(t, goodGroup(t))
			for range 2 {
				if status, said := post(t, a, body); status != 200 || said != "" {
					t.Fatalf("answered %d %q", status, said)
				}
			}
			got := a.Totals()
			want := Counts{Hits: 6, Errors: 2, TopLevel: 4, Duration: 12000, Spans: 6}
			if got.Payloads != 2 || got.Counts != want || got.ProblemCount != 0 ||
				got.Bytes != uint64(2*len(body)) {
				t.Errorf("totals %+v", got)
			}
			if len(got.Rows) != 1 || got.Rows[0].Counts != want || got.Rows[0].Resource != "GET /" {
				t.Fatalf("rows %+v", got.Rows)
			}
			if p := got.Rows[0].Quantile(1); p < 2970 || p > 3030 {
				t.Errorf("slowest %v ns, want 3000 to 1 %%", p)
			}
			if len(received) != 2 || !bytes.Equal(received[1].Body, body) ||
				received[1].Payload.Stats[0].Start != 20 {
				t.Errorf("received %+v", received)
			}
			if got := received[0].Header.Get("Content-Type"); got != "application/msgpack" {
				t.Errorf("content type %q", got)
			}
		})
	}
}

func TestAgent_RecordsProblems(t *testing.T) {
	bucket := func(start, duration int, groups ...any) []byte {
		return marshal(t,
			object{"Stats": []any{object{
				"Start": start, "Duration": duration,
				"Stats": append([]any{}, groups...),
			}}})
	}
	for name, test := range map[string]struct {
		body []byte
		want string
	}{
		"fewer in the sketch": {
			payloadOf(t, with(goodGroup(t), "Hits", 4)),
			"4 hits, but its sketches count 3",
		},
		"errors not in it": {
			payloadOf(t, with(goodGroup(t), "Errors", 0)),
			"0 errors, but its error sketch counts 1",
		},
		"more errors than": {
			payloadOf(t, with(goodGroup(t), "Errors", 4)),
			"4 errors and 2 top-level hits of 3 hits",
		},
		"no service":   {payloadOf(t, with(goodGroup(t), "Service", "")), "no service or no name"},
		"trace root 9": {payloadOf(t, with(goodGroup(t), "IsTraceRoot", 9)), "trace root 9"},
		"garbage for a sketch": {
			payloadOf(t, with(goodGroup(t), "OkSummary", []byte{1, 2, 3})),
			"ok summary: decode sketch",
		},
		"another mapping": {
			payloadOf(t, with(goodGroup(t), "OkSummary", otherMapping(t))),
			"is not the agent's",
		},
		"a bin like no other": {
			payloadOf(t, with(goodGroup(t), "OkSummary", farBin(t))),
			"outside any duration",
		},
		"start off the grid": {bucket(25, 10, goodGroup(t)), "no multiple of its duration"},
		"no duration":        {bucket(20, 0, goodGroup(t)), "no duration"},
		"no groups":          {bucket(20, 10), "without groups"},
		"no buckets":         {marshal(t, object{"Env": "prod"}), "without buckets"},
		"folded by the agent": {bucket(20, 10,
			with(goodGroup(t), "PeerTags", []string{"a:1", "b:2"}),
			with(with(goodGroup(t), "PeerTags", []string{"b:2", "a:1"}), "Type",
				"web")), "that the agent folds"},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAgent(t, Config{})
			if status, said := post(t, a, test.body); status != 200 {
				t.Fatalf("answered %d %q, the real agent takes it", status, said)
			}
			got := a.Totals()
			if got.ProblemCount == 0 || !strings.Contains(strings.Join(got.Problems, "\n"), test.want) {
				t.Errorf("problems %q, want one with %q", got.Problems, test.want)
			}
		})
	}
}

// TestProbe_CountsNothing: an empty payload only checks whether the agent is
// available, and is not a problem.
func TestProbe_CountsNothing(t *testing.T) {
	a := startAgent(t, Config{})
	status, said := post(t, a, marshal(t, object{}))
	if got := a.Totals(); status != 200 || got.Probes != 1 || got.Payloads != 0 || got.ProblemCount != 0 {
		t.Errorf("answered %d %q, totals %+v", status, said, got)
	}
}

func TestWeightedSpans_MayDifferFromSketches(t *testing.T) {
	a := startAgent(t, Config{Weighted: true})
	post(t, a, payloadOf(t, with(goodGroup(t), "Hits", 30)))
	if got := a.Totals(); got.ProblemCount != 0 || got.Spans != 3 || got.Hits != 30 {
		t.Errorf("totals %+v", got)
	}
}

func TestAgent_Refuses(t *testing.T) {
	a := startAgent(t, Config{})
	tooBig := marshal(t, object{"Env": strings.Repeat("x", maxRequestBytes)})
	for name, body := range map[string][]byte{
		"float for integer": payloadOf(t, object{"Hits": 1.0}), "too big": tooBig, "gzip": {0x1f, 0x8b, 8},
	} {
		if status, said := post(t, a, body); status != 400 || said == "" {
			t.Errorf("%s: answered %d %q, want 400 and why", name, status, said)
		}
	}
	if got := a.Totals(); got.Payloads != 0 || got.Refused != 3 {
		t.Errorf("totals %+v", got)
	}
	if _, _, err := request(t, a, "/v0.6/stats", payloadOf(t, nil)); err == nil {
		t.Error("a nil group got an answer, the real agent closes the connection")
	}
	info := DefaultInfo()
	info.Endpoints = []string{"/info"}
	a.SetInfo(info)
	if status, _ := post(t, a, payloadOf(t, goodGroup(t))); status != 404 {
		t.Errorf("answered %d without the endpoint, want 404", status)
	}
}

func TestInfo_StateHeader(t *testing.T) {
	a := startAgent(t, Config{})
	resp, body, err := request(t, a, "/info", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Header.Get("Datadog-Agent-State") != "" {
		t.Error("a state header on /info itself")
	}
	var said struct {
		Version   string
		Endpoints []string
		PeerTags  []string `json:"peer_tags"`
		Kinds     []string `json:"span_kinds_stats_computed"`
		Drop      bool     `json:"client_drop_p0s"`
		Obfuscate int      `json:"obfuscation_version"`
		Config    struct {
			Max int `json:"max_request_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		t.Fatal(err)
	}
	if len(said.PeerTags) != 44 || len(said.Kinds) != 4 || !said.Drop || said.Obfuscate != 1 ||
		said.Config.Max != 25<<20 || said.Endpoints[0] != "/v0.6/stats" {
		t.Errorf("info %+v", said)
	}
	sum := sha256.Sum256([]byte(body))
	resp, _, err = request(t, a, "/v0.6/stats", payloadOf(t, goodGroup(t)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := resp.Header.Get("Datadog-Agent-State"), hex.EncodeToString(sum[:]); got != want {
		t.Errorf("state %q, want the hash of the body %q", got, want)
	}
	if got := resp.Header.Get("Datadog-Agent-Version"); got != said.Version || got == "" {
		t.Errorf("version %q, /info says %q", got, said.Version)
	}
}

func TestFaults(t *testing.T) {
	body := payloadOf(t, goodGroup(t))
	for name, test := range map[string]struct {
		fault    Fault
		status   int // 0: no response
		payloads uint64
	}{
		"answer":       {Fault{Kind: Answer, Status: 503, Header: http.Header{"Retry-After": {"7"}}}, 503, 0},
		"raw":          {Fault{Kind: Raw, Raw: []byte("HTTP/1.1 299 Odd\r\n\r\n")}, 299, 0},
		"close unread": {Fault{Kind: CloseUnread}, 0, 0},
		"close read":   {Fault{Kind: CloseRead}, 0, 1},
		"none":         {Fault{}, 200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAgent(t, Config{})
			a.SetFault(func(*http.Request) Fault { return test.fault })
			resp, _, err := request(t, a, "/v0.6/stats", body)
			if (err == nil) != (test.status != 0) {
				t.Fatalf("error %v, want status %d", err, test.status)
			}
			if err == nil && resp.StatusCode != test.status {
				t.Errorf("status %d, want %d", resp.StatusCode, test.status)
			}
			if name == "answer" && resp.Header.Get("Retry-After") != "7" {
				t.Errorf("headers %v", resp.Header)
			}
			if got := a.Totals().Payloads; got != test.payloads {
				t.Errorf("%d payloads counted, want %d", got, test.payloads)
			}
		})
	}
}

func TestClose_EndsHangingRequest(t *testing.T) {
	a := startAgent(t, Config{})
	asked := make(chan struct{})
	a.SetFault(func(*http.Request) Fault { close(asked); return Fault{Kind: Hang} })
	ended := make(chan error)
	go func() {
		_, _, err := request(t, a, "/v0.6/stats", payloadOf(t, goodGroup(t)))
		ended <- err
	}()
	<-asked
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a request that hung was answered")
	}
}

func TestAgent_RowsAndProblemsAreBounded(t *testing.T) {
	l := &ledger{}
	for i := range maxRows + 50 {
		l.count(&payload.Group{Labels: payload.Labels{Service: "s", Resource: fmt.Sprint(i)}, Hits: 1})
		l.problem("problem %d", i)
	}
	got := l.look()
	if len(got.Rows) != maxRows+1 || got.Hits != maxRows+50 {
		t.Fatalf("%d rows, %d hits", len(got.Rows), got.Hits)
	}
	if last := got.Rows[maxRows]; last.Resource != Other || last.Hits != 50 {
		t.Errorf("last row %+v", last)
	}
	if len(got.Problems) != payload.MaxProblems || got.ProblemCount != maxRows+50 {
		t.Errorf("%d problems kept of %d", len(got.Problems), got.ProblemCount)
	}
}

type object = map[string]any

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// payloadOf returns a payload with one group.
func payloadOf(t testing.TB, group any) []byte {
	t.Helper()
	return marshal(t, object{"Stats": []any{object{"Start": 20, "Duration": 10, "Stats": []any{group}}}})
}
