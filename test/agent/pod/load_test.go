package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLoad_SendsEachRequestOnce(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path]++
		if strings.HasSuffix(r.URL.Path, "7") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	l := newLoad(strings.TrimPrefix(server.URL, "http://"))
	path := func(number int) string { return fmt.Sprint("/", number) }
	first, second := l.run(path, 1000, 100*time.Millisecond, time.Second),
		l.run(path, 1000, 50*time.Millisecond, time.Second)
	// On a busy machine, some requests are skipped.
	if first.requests > 100 || second.requests > 50 || first.requests*second.requests == 0 ||
		l.sent != first.requests+second.requests {
		t.Errorf("%d and %d requests, %d in all", first.requests, second.requests, l.sent)
	}
	failed := 0
	for path, times := range seen {
		if times != 1 {
			t.Errorf("%s was requested %d times", path, times)
		}
		if strings.HasSuffix(path, "7") {
			failed++
		}
	}
	if len(seen) != l.sent || first.failed+second.failed != failed || !slices.IsSorted(first.latencies) {
		t.Errorf("%d requests of %d paths, %d and %d failed of %d", l.sent, len(seen), first.failed,
			second.failed, failed)
	}
}

func TestLoad_Share(t *testing.T) {
	w := window{}
	if w.share(0.99) != 0 {
		t.Error("no latencies")
	}
	for i := range 101 {
		w.latencies = append(w.latencies, time.Duration(i))
	}
	if w.share(0) != 0 || w.share(0.5) != 50 || w.share(0.99) != 99 || w.share(1) != 100 {
		t.Error(w.share(0), w.share(0.5), w.share(0.99), w.share(1))
	}
}

func TestWindows_Add(t *testing.T) {
	w := window{2, 1, time.Second, []time.Duration{3, 5}}
	w.add(window{3, 1, time.Minute, []time.Duration{1, 4, 6}})
	if w.requests != 5 || w.failed != 2 || w.lasted != time.Second+time.Minute ||
		!slices.Equal(w.latencies, []time.Duration{1, 3, 4, 5, 6}) {
		t.Errorf("%+v", w)
	}
}
