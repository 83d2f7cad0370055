package prometheus

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// blockedWriter is a connection whose writes block until the test sends their error, which may be nil.
type blockedWriter struct {
	*httptest.ResponseRecorder
	release chan error
}

func (h blockedWriter) Write(b []byte) (int, error) {
	if err := <-h.release; err != nil {
		return 0, err
	}
	return h.ResponseRecorder.Write(b)
}

// reader is a scrape that blocks in its first write. The test must call release to continue it.
func reader(x *Exporter, method string) (release func(error)) {
	w := blockedWriter{httptest.NewRecorder(), make(chan error)}
	go func() {
		defer func() { _ = recover() }() // as the server does
		x.ServeHTTP(w, httptest.NewRequest(method, Path, nil))
	}()
	synctest.Wait()
	return func(err error) {
		w.release <- err
		synctest.Wait()
	}
}

// A cycle is settled by a complete scrape that contains its spans, and is in doubt during the
// scrape. An incomplete scrape ends the doubt. A scrape that began before the end of the cycle, or
// a HEAD request, does not settle it.
func TestSettled_ByCompleteScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := exporterWith(t, nil)
		f, err := export.New(export.Config{}, x.Describe())
		if err != nil {
			t.Fatal(err)
		}
		accept := func(number uint64) *testcycle.Reports {
			sealed := recent(testcycle.Spans(7))
			sealed.Cycle = number
			reports := testcycle.Watch(sealed)
			f.Accept(sealed)
			synctest.Wait()
			return reports
		}
		wantReports := func(when string, reports *testcycle.Reports, want string) {
			t.Helper()
			if got := reports.String(); got != want {
				t.Errorf("%s: reports %q, want %q", when, got, want)
			}
		}
		x.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		zeroth := accept(0) // the first cycle of a daemon
		time.Sleep(time.Minute)
		wantReports("the scrape was before the cycle", zeroth, "")
		first := accept(1)
		release := reader(x, http.MethodGet)
		second := accept(2)
		wantReports("a scrape is in flight", first, "doubtful")
		wantReports("the scrape began before the end of the cycle", second, "")
		release(net.ErrClosed)
		wantReports("the scrape was incomplete", first, "doubtful clear")
		release = reader(x, http.MethodHead)
		release(nil)
		time.Sleep(time.Minute)
		wantReports("after a HEAD request", second, "doubtful clear")
		release = reader(x, http.MethodGet)
		third := accept(3)
		release(nil)
		wantReports("before the last byte", second, "doubtful clear doubtful")
		time.Sleep(time.Minute)
		wantReports("after the last byte", first, "doubtful clear doubtful clear doubtful settled")
		wantReports("after the last byte", second, "doubtful clear doubtful settled")
		wantReports("the cycle was not in the scrape", third, "")
		time.Sleep(export.DefaultRetryAge)
		wantReports("after the retry age without a scrape", third, "settled")
		last := accept(4)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.Close(ctx)
		wantReports("after the shutdown", last, "settled")
	})
}

// A shutdown waits for a scraper that has only scraped before the end of the first cycle. It does not wait if there
// was only a HEAD request.
func TestShutdown_WaitsAfterEmptyScrape(t *testing.T) {
	for method, wantFlushed := range map[string]uint64{http.MethodGet: 7, http.MethodHead: 0} {
		synctest.Test(t, func(t *testing.T) {
			x := exporterWith(t, nil)
			f, err := export.New(export.Config{}, x.Describe())
			if err != nil {
				t.Fatal(err)
			}
			x.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, Path, nil))
			f.Accept(recent(testcycle.Spans(7)))
			go func() {
				const untilNextScrape = 4 * time.Second
				time.Sleep(untilNextScrape)
				x.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, Path, nil))
			}()
			const grace = 10 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), grace)
			defer cancel()
			f.Close(ctx)
			if flushed := f.Destinations()[0].Stats().Flushed; flushed != wantFlushed {
				t.Errorf("after an empty response to %s, %d spans are flushed, want %d", method, flushed, wantFlushed)
			}
			time.Sleep(grace)
		})
	}
}

// unfinished is a connection that fails when its buffer is flushed.
type unfinished struct{ *httptest.ResponseRecorder }

func (unfinished) FlushError() error { return net.ErrClosed }

// A scrape is complete when its last byte was written to the connection.
func TestScrape_CompleteAfterLastByte(t *testing.T) {
	x := exporterWith(t, nil)
	one(t, x, 0, "op")
	defer func() {
		if recover() != http.ErrAbortHandler || x.LastScrape() != 0 {
			t.Error("a response without its last byte counts as complete")
		}
	}()
	x.ServeHTTP(unfinished{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, Path, nil))
}
