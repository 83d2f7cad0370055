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

// held is a connection whose writes block until the test releases them, and then fail or not.
type held struct {
	*httptest.ResponseRecorder
	goOn chan error
}

func (h held) Write(b []byte) (int, error) {
	if err := <-h.goOn; err != nil {
		return 0, err
	}
	return h.ResponseRecorder.Write(b)
}

// reader is a scrape that blocks in its first write. The test must call goOn, which releases it.
func reader(x *Exporter, method string) (goOn func(error)) {
	w := held{httptest.NewRecorder(), make(chan error)}
	go func() {
		defer func() { _ = recover() }() // as the server does
		x.ServeHTTP(w, httptest.NewRequest(method, Path, nil))
	}()
	synctest.Wait()
	return func(err error) {
		w.goOn <- err
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
			told := testcycle.Watch(sealed)
			f.Accept(sealed)
			synctest.Wait()
			return told
		}
		says := func(when string, told *testcycle.Reports, want string) {
			t.Helper()
			if got := told.String(); got != want {
				t.Errorf("%s: told %q, want %q", when, got, want)
			}
		}
		x.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		zeroth := accept(0) // the first cycle of a daemon
		time.Sleep(time.Minute)
		says("the scrape came before it", zeroth, "")
		first := accept(1)
		goOn := reader(x, http.MethodGet)
		second := accept(2)
		says("a scrape is under way", first, "doubtful")
		says("it began before the cycle ended", second, "")
		goOn(net.ErrClosed)
		says("it was cut short", first, "doubtful clear")
		goOn = reader(x, http.MethodHead)
		goOn(nil)
		time.Sleep(time.Minute)
		says("a head was asked for", second, "doubtful clear")
		goOn = reader(x, http.MethodGet)
		third := accept(3)
		goOn(nil)
		says("all was written but the end", second, "doubtful clear doubtful")
		time.Sleep(time.Minute)
		says("all was written", first, "doubtful clear doubtful clear doubtful settled")
		says("all was written", second, "doubtful clear doubtful settled")
		says("it was not in that scrape", third, "")
		time.Sleep(export.DefaultRetryAge)
		says("nobody came for it", third, "settled")
		last := accept(4)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.Close(ctx)
		says("at a stop", last, "settled")
	})
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
			t.Error("an answer whose end did not leave was taken for whole")
		}
	}()
	x.ServeHTTP(unfinished{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, Path, nil))
}
