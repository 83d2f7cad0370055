package prometheus

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// The format depends on the Accept header, with gzip or without. All formats have the same content.
func TestScrape_FormatByAcceptHeader(t *testing.T) {
	x := exporterWith(t, nil)
	one(t, x, 0, "op")
	for accept, format := range map[string]string{
		"":                    "text/plain; version=0.0.4",
		"*/*":                 "text/plain; version=0.0.4",
		"text/plain":          "text/plain; version=0.0.4",
		"text/html,*/*;q=0.1": "text/plain; version=0.0.4", asProtobuf: "application/vnd.google.protobuf",
		"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5": "application/openmetrics-text; version=1.0.0",
		asProtobuf +
			";q=0.2,application/openmetrics-text;version=1.0.0;q=0.8": "application/openmetrics-text; version=1.0.0",
	} {
		plain, header := ask(t, x, accept, "")
		if got := header.Get("Content-Type"); !strings.HasPrefix(got, format) ||
			header.Get("Content-Encoding") != "" {
			t.Errorf("%q is answered in %q, want %q", accept, got, format)
		}
		packed, header := ask(t, x, accept, "br, gzip")
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil || header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%q with gzip: %v", accept, err)
		}
		if unpacked, err := io.ReadAll(r); err != nil || !bytes.Equal(unpacked, plain) {
			t.Errorf("%q: %v; with gzip %q, without %q", accept, err, unpacked, plain)
		}
	}
	if body, _ := ask(t, x, "application/openmetrics-text;version=1.0.0", ""); !bytes.HasSuffix(body,
		[]byte("# EOF\n")) ||
		bytes.Count(body, []byte("# TYPE")) != 2 || !bytes.Contains(body, []byte("_created{")) {
		t.Errorf("OpenMetrics is %s", body)
	}
}

// Before the first cycle, a scrape in any format is empty and succeeds.
func TestScrape_BeforeFirstCycle(t *testing.T) {
	x := exporterWith(t, nil)
	for accept, want := range map[string]string{
		"": "", asProtobuf: "",
		"application/openmetrics-text;version=1.0.0": "# EOF\n",
	} {
		if body, _ := ask(t, x, accept, ""); string(body) != want {
			t.Errorf("%q: %q", accept, body)
		}
	}
}

// large adds a cycle whose text exceeds the socket buffers.
func large(t testing.TB, x *Exporter) {
	t.Helper()
	limits := roomForAll
	limits.Series, limits.Bytes = 4000, 64<<20
	x.LimitTotals(limits)
	c := newCycle(t)
	origin := c.Origin(span.Origin{Service: "web"})
	for i := range 1000 {
		name := fmt.Sprint(i, strings.Repeat("x", 2000))
		c.Add(0, c.Key(origin, span.Key{Service: "web", Operation: name, Resource: "r"}), 0, 1000, 0, 1)
	}
	publish(x, recent(c.Seal()))
}

// serve serves an exporter, and returns its address.
func serve(t testing.TB, x *Exporter) string {
	t.Helper()
	s := httptest.NewUnstartedServer(x)
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.Listener.Addr().String()
}

// hang begins a scrape and reads nothing of the response.
func hang(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, "GET "+Path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A scraper that hangs delays neither other scrapes nor cycles. Its scrape does not count, and a
// later one can use its slot.
func TestScrape_HangingDelaysNoOther(t *testing.T) {
	x := exporterWith(t, nil)
	large(t, x)
	address := serve(t, x)
	conn := hang(t, address)
	eventually.True(t, "the scrape hangs", func() bool { return x.queue.freeEncoders() == maxScrapes-1 })
	if x.LastScrape() != 0 {
		t.Error("a scrape without a read counts as complete")
	}
	for i := range 5 {
		one(t, x, time.Duration(i)*time.Second, "op")
		answer, err := http.Get("http://" + address + Path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if want := fmt.Sprintf("} %d\n", i+1); err != nil ||
			!strings.Contains(string(body), `span_name="op"`) ||
			!strings.Contains(string(body), want) {
			t.Fatalf("next to a hanging scrape: %v, without %q", err, want)
		}
	}
	if x.LastScrape() == 0 {
		t.Error("a completely read scrape does not count")
	}
	conn.Close()
	eventually.True(t, "the slot of the closed scrape is free", func() bool {
		return x.queue.freeEncoders() == maxScrapes
	})
}

// freeEncoders returns the number of scrapes that can begin at once.
func (q *scrapeQueue) freeEncoders() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.free)
}

// Clients that hang or read slowly, with many connections that they open again and again, do not keep
// another client from scraping.
func TestScrapes_HungClientsCostOthersNothing(t *testing.T) {
	x := exporterWith(t, nil)
	large(t, x)
	address := serve(t, x)
	stop := make(chan struct{})
	var hung sync.WaitGroup
	defer hung.Wait()
	defer close(stop)
	for i := range 60 {
		hung.Go(func() {
			for {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, "GET "+Path+" HTTP/1.1\r\nHost: x\r\n\r\n")
				for isSlow := i%2 == 0; ; {
					_ = conn.SetReadDeadline(time.Now().Add(time.Second))
					if _, err := conn.Read(make([]byte, 1)); err != nil && !os.IsTimeout(err) || !isSlow {
						break
					}
					select {
					case <-stop:
						conn.Close()
						return
					case <-time.After(100 * time.Millisecond):
					}
				}
				select {
				case <-stop:
					conn.Close()
					return
				case <-time.After(time.Second):
				}
				conn.Close()
			}
		})
	}
	eventually.True(t, "all slots are in use", func() bool { return x.queue.freeEncoders() == 0 })
	scraper := http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)},
	}).DialContext}}
	for range 3 {
		// On a busy machine, the scraper itself can read too slowly, and is then disconnected like the others.
		eventually.True(t, "a scrape is complete", func() bool {
			answer, err := scraper.Get("http://" + address + Path)
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			n, err := io.Copy(io.Discard, answer.Body)
			return err == nil && n >= 1<<20
		})
	}
}

// Scrapes beyond the limit are answered one after the other. A scraper that disconnects while it
// waits takes no place.
func TestScrape_OverLimitWaits(t *testing.T) {
	x := exporterWith(t, nil)
	large(t, x)
	address := serve(t, x)
	first, second := hang(t, address), hang(t, address)
	eventually.True(t, "both hang", func() bool { return x.queue.freeEncoders() == 0 })
	left, leave := context.WithCancel(t.Context())
	r := httptest.NewRequest(http.MethodGet, Path, nil).WithContext(left)
	leave()
	x.ServeHTTP(httptest.NewRecorder(), r)
	answered := make(chan int)
	go func() {
		w := httptest.NewRecorder()
		x.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
		answered <- w.Body.Len()
	}()
	first.Close()
	select {
	case n := <-answered:
		if n < 1<<20 {
			t.Errorf("the one that waited has %d bytes", n)
		}
	case <-time.After(time.Minute):
		t.Fatal("the one that waited has no answer a minute after its place was free")
	}
	second.Close()
	eventually.True(t, "all slots are free", func() bool { return x.queue.freeEncoders() == maxScrapes })
}

// A write error ends the connection, so that the scraper does not consider the response complete.
func TestScrape_WriteErrorEndsConnection(t *testing.T) {
	x := exporterWith(t, nil)
	one(t, x, 0, "op")
	for _, encoding := range []string{"", "gzip"} {
		func() {
			defer func() {
				if recover() != http.ErrAbortHandler {
					t.Errorf("with %q the answer ends as if it were complete", encoding)
				}
			}()
			r := httptest.NewRequest(http.MethodGet, Path, nil)
			r.Header.Set("Accept-Encoding", encoding)
			x.ServeHTTP(closedConn{httptest.NewRecorder()}, r)
		}()
	}
	if x.LastScrape() != 0 || x.queue.freeEncoders() != maxScrapes {
		t.Errorf("last scrape at %d, and %d slots are free", x.LastScrape(), x.queue.freeEncoders())
	}
}

// closedConn is a closed connection.
type closedConn struct{ *httptest.ResponseRecorder }

func (closedConn) Write([]byte) (int, error) { return 0, net.ErrClosed }

// Spans are pending until a complete scrape contains them, and unsent if a shutdown comes first. The
// destination has its stats before the first cycle.
func TestAccounting_FlushedWhenScraped(t *testing.T) {
	x, before := exporterWith(t, nil), runtime.NumGoroutine()
	f, err := export.New(export.Config{}, x.Describe())
	if err != nil {
		t.Fatal(err)
	}
	d := f.Destinations()[0]
	eventually.True(t, "it is there", func() bool { s := d.Stats(); return s.State() == export.StateAccepting })
	spans := uint64(0)
	for cycle := range uint64(3) {
		sealed := recent(testcycle.Spans(7))
		sealed.Cycle = cycle
		spans += sealed.Spans()
		f.Accept(sealed)
	}
	if s := d.Stats(); s.Pending != spans || s.Flushed != 0 {
		t.Errorf("before a scrape: %+v", s)
	}
	x.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, Path, nil))
	eventually.True(t, "all spans are flushed", func() bool { return d.Stats().Flushed == spans })
	last := recent(testcycle.Spans(2))
	last.Cycle = 3
	f.Accept(last)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.Close(ctx)
	if s := d.Stats(); s.Flushed != spans || s.Unsent[export.Shutdown] != 2 || s.Pending != 0 || s.Totals.Series != 1 {
		t.Errorf("after the shutdown: %+v", s)
	}
	eventually.True(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// A scraper gets gzip only if its Accept-Encoding permits it.
func TestGzip_OnlyIfAccepted(t *testing.T) {
	x := exporterWith(t, nil)
	one(t, x, 0, "op")
	for accept, want := range map[string]string{
		"gzip": "gzip", "GZIP": "gzip", "br, gzip;q=0.5": "gzip", "gzip; q=1": "gzip", "gzip;q=0": "",
		"gzip; q=0.0, identity": "", "x-gzip-like": "", "identity": "", "gzip;q=x": "", "": "",
	} {
		_, header := ask(t, x, "", accept)
		if got := header.Get("Content-Encoding"); got != want {
			t.Errorf("Accept-Encoding %q: the response is in %q, want %q", accept, got, want)
		}
	}
}
