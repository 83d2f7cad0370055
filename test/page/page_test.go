//go:build browser

package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// shown is the content of the page for one response.
type shown struct {
	At      string
	Figures [][2]string // path of each figure in /status, and its text
}

// readFigures reads the complete page at once: no other script runs in between.
const readFigures = `({
	At: document.documentElement.dataset.at,
	Figures: [...document.querySelectorAll("[data-figure]")].map((e) => [e.dataset.figure, e.textContent]),
})`

// TestFigures_SameAsStatus compares every figure on the page of a daemon under load with the response of
// /status that the page shows.
func TestFigures_SameAsStatus(t *testing.T) {
	t.Parallel()
	address, socket := startDaemon(t, nil)
	load(t, socket, true)
	p := newProxy(t, address)
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(p)
	seen := map[string]bool{}
	var received []string
	for range 4 {
		now := ask[shown](b, readFigures)
		answer := p.answer(now.At)
		if answer == nil {
			t.Fatalf("the page shows /status of %q, which is no response of the daemon", now.At)
		}
		for _, figure := range now.Figures {
			want := figureIn(t, answer, figure[0])
			if figure[1] != want {
				t.Errorf("%s is %q on the page and %q in /status", figure[0], figure[1], want)
			}
			seen[figure[0]] = true
			if figure[0] == "accounting.received" {
				received = append(received, figure[1])
			}
		}
		b.await(fmt.Sprintf(`document.documentElement.dataset.at !== %q`, now.At))
	}
	for _, path := range []string{
		"accounting.received", "accounting.aggregated", "accounting.flushed", "accounting.pending", "accounting.unsent",
		"sum accounting.dropped",
		"drainers.0.ring.slots", "drainers.1.ring.used", "drainers.1.ring.high_water", "aggregates.live",
		"origins.live",
		"clients.4.received", "flushes.0.spans", "busiest.rows.0.resource", "collapsed.http_endpoint",
		"agent.url", "connections.live",
	} {
		if !seen[path] {
			t.Errorf("%s is not on the page", path)
		}
	}
	if received = slices.Compact(received); len(received) < 3 {
		t.Errorf("received was %v in four looks: the page does not live", received)
	}
	b.expectNoComplaints()
}

// figureIn formats the figure at a path of /status as the page should.
func figureIn(t *testing.T, answer map[string]any, path string) string {
	t.Helper()
	path, isSum := strings.CutPrefix(path, "sum ")
	var at any = answer
	for part := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				t.Fatalf("/status has no %s", path)
			}
			at = v[i]
		}
	}
	if isSum {
		total := int64(0)
		for _, v := range at.(map[string]any) {
			n, err := v.(json.Number).Int64()
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
		at = json.Number(strconv.FormatInt(total, 10))
	}
	switch v := at.(type) {
	case json.Number:
		return grouped(v.String())
	case string:
		return readable(v)
	}
	t.Fatalf("/status has no figure %s but %v", path, at)
	return ""
}

// readable returns a text with invisible characters escaped, as the page shows it.
func readable(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r) || unicode.Is(unicode.Zs, r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// grouped inserts a comma between groups of three digits.
func grouped(digits string) string {
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// TestLabels_HostileStayText checks that labels of tracers appear as text and have no other effect.
func TestLabels_HostileStayText(t *testing.T) {
	t.Parallel()
	address, socket := startDaemon(t, nil)
	load(t, socket, true)
	p := newProxy(t, address)
	b := openBrowser(t)
	b.dress(1280, "dark", "reduce")
	b.open(p)
	for _, id := range []string{"request-rows", "client-rows", "origin-rows"} {
		text := ask[string](b, fmt.Sprintf(`document.getElementById(%q).textContent`, id))
		if !strings.Contains(text, hostile[0]) {
			t.Errorf("%s does not show %s as it is, but %.300s", id, hostile[0], text)
		}
	}
	if made := ask[int](b,
		`document.querySelectorAll('main script, main img, [onerror], [onload]').length`); made != 0 {
		t.Errorf("%d elements were made of labels", made)
	}
	refused := ask[bool](b,
		`(() => { try { document.body.innerHTML += ""; return false } catch { return true } })()`)
	if !refused {
		t.Error("the browser would take a text for markup: the policy does not hold")
	}
	b.takeComplaints() // of the line above
	b.await(`document.documentElement.dataset.at !== "` +
		ask[string](b, `document.documentElement.dataset.at`) + `"`)
	b.expectNoComplaints()
}

// TestControlCharacters_AreShown checks that control characters are visible on the page, in texts and
// tooltips, and reverse nothing.
func TestControlCharacters_AreShown(t *testing.T) {
	t.Parallel()
	address, socket := startDaemon(t, nil)
	load(t, socket, true)
	p := newProxy(t, address)
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(p)
	text := ask[string](b, `document.getElementById("request-rows").textContent`)
	for _, want := range []string{`\u202egnihton si siht`, `a\x00b\x1b[2J`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not among the busiest: %s", want, text)
		}
	}
	hidden := ask[[]string](b, `[...document.querySelectorAll("body *")]
		.flatMap((e) => [e.textContent, ...[...e.attributes].map((a) => a.value)])
		.filter((text) => /[\p{Cc}\p{Cf}]/u.test(text.replaceAll("\n", "")))`)
	if len(hidden) > 0 {
		t.Errorf("%d texts of the page contain control or format characters, such as %q", len(hidden), hidden[0])
	}
}

// TestWords_AreNotSplit uses the width of a small laptop: words, figures and flags must not be split,
// because split ones are hard to read and to search.
func TestWords_AreNotSplit(t *testing.T) {
	t.Parallel()
	address, socket := startDaemon(t, func(r *http.Request) standin.Fault {
		if r.URL.Path == "/info" {
			return standin.Fault{}
		}
		// so that every section has rows
		return standin.Fault{Kind: standin.Answer, Status: http.StatusForbidden}
	})
	load(t, socket, false)
	p := newProxy(t, address)
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(p)
	b.await(`document.body.dataset.accounting === "lossy"`)
	b.picture("words")
	if broken := ask[[]string](b, brokenWords); len(broken) > 0 {
		t.Errorf("broken over two lines: %q", broken)
	}
}

// brokenWords returns the words of the page that span two lines.
const brokenWords = `(() => {
	const broken = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; (node = walk.nextNode());) {
		if (!node.parentElement.checkVisibility()) continue;
		if (node.parentElement.closest("script, noscript, .unseen, .ledger")) continue;
		for (const word of node.data.matchAll(/\S+/g)) {
			const range = document.createRange();
			range.setStart(node, word.index);
			range.setEnd(node, word.index + word[0].length);
			const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.top)));
			if (lines.size > 1) broken.push(word[0]);
		}
	}
	return [...new Set(broken)];
})()`

// TestSummary_FailingAgent checks that nothing is green while payloads wait for an agent
// that responds with 503, although nothing is lost, and that everything is green again once it accepts
// them.
func TestSummary_FailingAgent(t *testing.T) {
	t.Parallel()
	var well atomic.Bool
	address, socket := startDaemon(t, func(r *http.Request) standin.Fault {
		if r.URL.Path == "/info" || well.Load() {
			return standin.Fault{}
		}
		return standin.Fault{Kind: standin.Answer, Status: http.StatusServiceUnavailable}
	})
	load(t, socket, false)
	p := newProxy(t, address)
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(p)
	b.await(`document.body.dataset.accounting === "waiting"`)
	b.picture("waiting")
	for id, want := range map[string]string{
		"headline": "The agent responds, but does not accept payloads.", "summary": "No received span is lost yet.",
		"agent-state": "Responds, but does not accept payloads", "agent-facts": "the oldest for",
	} {
		if text := ask[string](b, fmt.Sprintf(`document.getElementById(%q).textContent`,
			id)); !strings.Contains(text, want) {
			t.Errorf("%s shows %q, want %q", id, text, want)
		}
	}
	well.Store(true)
	b.await(`document.body.dataset.accounting === "good"`)
	b.expectNoComplaints()
}

// TestSummary_FailingOTLPDestination checks that a failing OTLP destination is reported above the
// accounting, with its error message and a row about its requests, although every span is counted.
func TestSummary_FailingOTLPDestination(t *testing.T) {
	t.Parallel()
	address, socket := startDaemon(t, nil)
	load(t, socket, false)
	p := newProxy(t, address)
	respondWith := func(state, lastError string) {
		p.adds.Store(&map[string]any{"receivers": map[string]any{"otlp": map[string]any{
			"data": "OTLP", "requests": map[string]int{"counted": 9},
			"forwarded":   map[string]int{"accepted": 2, "refused": 7},
			"connections": map[string]int{"live": 1, "max": 9}, "last_response": time.Now(),
			"forward": map[string]string{"url": "http://collector:4318", "state": state, "last_error": lastError},
		}}})
	}
	respondWith("rejecting", "the destination answered 401 Unauthorized")
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(p)
	b.await(`document.body.dataset.accounting === "waiting"`)
	for id, want := range map[string]string{
		"headline":         "The upstream of OTLP rejected the last request.",
		"destination-rows": "requests: 2 accepted, 7 refusedthe destination answered 401 Unauthorized",
	} {
		if text := ask[string](b, fmt.Sprintf(`document.getElementById(%q).textContent`,
			id)); !strings.Contains(text, want) {
			t.Errorf("%s shows %q, want %q", id, text, want)
		}
	}
	respondWith("accepting", "")
	b.await(`document.body.dataset.accounting === "good"`)
	b.expectNoComplaints()
}

// TestSummary_PreviousDaemonKilled puts the recovery file of a killed daemon next to the socket.
func TestSummary_PreviousDaemonKilled(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "s.running-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	address, socket := startDaemonIn(t, dir, nil)
	load(t, socket, false)
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(newProxy(t, address))
	b.await(`document.getElementById("predecessors").checkVisibility() &&
		document.getElementById("predecessors").textContent
			.startsWith("The previous daemon crashed or was killed")`)
	b.expectNoComplaints()
}

// TestPage_OutOfDate stops the daemon and starts it again.
func TestPage_OutOfDate(t *testing.T) {
	t.Parallel()
	address, socket := startDaemon(t, nil)
	load(t, socket, false)
	p := newProxy(t, address)
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(p)
	p.away.Store(true)
	b.await(`document.body.dataset.state === "stale"`)
	if text := ask[string](b,
		`document.getElementById("stale").checkVisibility() &&
			document.getElementById("stale").textContent`); !strings.Contains(text, "does not respond") {
		t.Errorf("the banner shows %q", text)
	}
	b.picture("stale")
	p.away.Store(false)
	b.await(`document.body.dataset.state === "live" && !document.getElementById("stale").checkVisibility()`)
	for _, what := range b.takeComplaints() {
		// The browser itself reports each error response.
		if !strings.Contains(what, "502") {
			t.Error(what)
		}
	}
}

// TestPage_FitsAndIsAccessible checks the page with each window width and preference: it is not wider than
// the window, and a keyboard and a screen reader can use it.
func TestPage_FitsAndIsAccessible(t *testing.T) {
	t.Parallel()
	address, socket := startDaemon(t, nil)
	load(t, socket, false)
	p := newProxy(t, address)
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(p)
	if os.Getenv("SCREENSHOTS") != "" {
		time.Sleep(75 * time.Second) // for screenshots with some history; nothing depends on it
	}
	for _, dress := range []struct {
		name   string
		width  int64
		scheme string
		motion string
	}{
		{"light", 1280, "light", "no-preference"},
		{"dark", 1280, "dark", "reduce"},
		{"tablet", 800, "light", "no-preference"},
		{"narrow", 400, "light", "no-preference"},
		{"narrow-dark", 320, "dark", "reduce"},
	} {
		b.dress(dress.width, dress.scheme, dress.motion)
		b.await(fmt.Sprintf(`innerWidth === %d`, dress.width))
		before := ask[string](b, `document.documentElement.dataset.at`)
		b.await(fmt.Sprintf(`document.documentElement.dataset.at !== %q`, before))
		if wide := ask[int64](b, `document.documentElement.scrollWidth`); wide > dress.width {
			t.Errorf("%s: the page is %d wide in a window of %d", dress.name, wide, dress.width)
		}
		moves := ask[bool](b,
			`[...document.querySelectorAll(".stream")]
				.some((e) => e.checkVisibility() && e.getAnimations().length > 0)`)
		if want := dress.motion != "reduce" && dress.width > 760; moves != want {
			t.Errorf("%s: the river moves: %t, want %t", dress.name, moves, want)
		}
		if cut := ask[[]string](b, cutLinks); len(cut) > 0 {
			t.Errorf("%s: the navigation is cut: %q is outside of the window", dress.name, cut)
		}
		b.picture(dress.name)
	}
	for what, expression := range map[string]string{
		"a table without a caption": `[...document.querySelectorAll("table")]
			.filter((e) => !e.caption).length`,
		"a picture without words": `[...document.querySelectorAll("svg")]
			.filter((e) => !e.ariaLabel && e.ariaHidden !== "true").length`,
		"a section without a name": `[...document.querySelectorAll("section")]
			.filter((e) => !document.getElementById(e.getAttribute("aria-labelledby"))).length`,
		"not exactly one main and one h1": `+(document.querySelectorAll("main").length !== 1 ||
			document.querySelectorAll("h1").length !== 1)`,
		"a column without its scope": `document.querySelectorAll("th:not([scope])").length`,
		"an anchor that leads nowhere": `[...document.querySelectorAll('a[href^="#"]')]
			.filter((e) => !document.querySelector(e.getAttribute("href"))).length`,
		"not exactly one live region": `+(document.querySelectorAll("[aria-live]").length !== 1)`,
	} {
		if n := ask[int](b, expression); n != 0 {
			t.Errorf("%s, %d times", what, n)
		}
	}
	if first := b.tab(); first != "Skip to the status" {
		t.Errorf("the first stop of a keyboard is %q", first)
	}
	b.expectNoComplaints()
}

// cutLinks returns the links of the navigation that are not completely visible.
const cutLinks = `[...document.querySelectorAll("nav a")].filter((e) => {
	const at = e.getBoundingClientRect(), list = e.closest("ul").getBoundingClientRect();
	return at.left < Math.max(list.left, 0) - 1 || at.right > Math.min(list.right, innerWidth) + 1;
}).map((e) => e.textContent)`

// TestSections_RequestsComeFirst checks the order of the sections, and that internals are folded.
func TestSections_RequestsComeFirst(t *testing.T) {
	t.Parallel()
	address, socket := startDaemon(t, nil)
	load(t, socket, false)
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(newProxy(t, address))
	shown := ask[[]string](b, `[...document.querySelectorAll("main > section[id]")].map((e) => e.id)`)
	want := []string{
		"requests", "service-graph", "accounting", "destinations", "agent", "flushes", "senders", "origins", "limits", "config",
		"internals",
	}
	if !slices.Equal(shown, want) {
		t.Errorf("sections are %q, want %q", shown, want)
	}
	if ask[bool](b, `document.getElementById("ring-rows").checkVisibility()`) {
		t.Error("the drainers are not folded")
	}
}

// TestSummary_LostSpans uses an agent that refuses every payload: the first sentence reports the loss, a
// row shows the reason and a remedy, and the last flushes quote the agent.
func TestSummary_LostSpans(t *testing.T) {
	t.Parallel()
	address, socket := startDaemon(t, func(r *http.Request) standin.Fault {
		if r.URL.Path == "/info" {
			return standin.Fault{}
		}
		return standin.Fault{Kind: standin.Answer, Status: http.StatusForbidden}
	})
	load(t, socket, true)
	p := newProxy(t, address)
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(p)
	b.await(`document.body.dataset.accounting === "lossy"`)
	for id, want := range map[string]string{
		"headline": "are lost", "loss-rows": "rejected", "flush-rows": "403 Forbidden",
		"agent-state": "does not accept", "announce": "are lost",
	} {
		if text := ask[string](b, fmt.Sprintf(`document.getElementById(%q).textContent`,
			id)); !strings.Contains(text, want) {
			t.Errorf("%s shows %q, want %q", id, text, want)
		}
	}
	b.picture("lossy")
	b.dress(390, "dark", "no-preference")
	b.picture("lossy-narrow")
	b.expectNoComplaints()
}
