package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const connections = 32

// load sends requests at a fixed rate. It is used by one goroutine.
type load struct {
	address string
	client  *http.Client
	number  int // the next request's
	sent    int // from first to last
}

// window is what became of the requests of some time.
type window struct {
	requests  int
	failed    int
	lasted    time.Duration
	latencies []time.Duration // from when a request was due, in ascending order
}

func newLoad(address string) *load {
	transport := &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}
	return &load{address: address, client: &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

// get sends one request.
func (l *load) get(path string) error {
	answer, err := l.client.Get("http://" + l.address + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}

// run sends for a while, and waits for the answers. Where an application is too slow, requests
// that are not sent when the most that is given is over are never sent.
func (l *load) run(path func(number int) string, rate int, lasts, most time.Duration) window {
	requests := int(lasts.Seconds() * float64(rate))
	latencies := make([]time.Duration, requests) // 0 of what was not sent
	var next, failed atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for range connections {
		wg.Go(func() {
			for {
				number := int(next.Add(1) - 1)
				due := begun.Add(time.Duration(number) * time.Second / time.Duration(rate))
				if number >= requests || time.Since(begun) > most {
					return
				}
				time.Sleep(time.Until(due))
				if l.get(path(l.number+number)) != nil {
					failed.Add(1)
				}
				latencies[number] = time.Since(due)
			}
		})
	}
	wg.Wait()
	w := window{failed: int(failed.Load()), lasted: time.Since(begun)}
	w.latencies = slices.DeleteFunc(latencies, func(took time.Duration) bool { return took == 0 })
	w.requests = len(w.latencies)
	l.number, l.sent = l.number+requests, l.sent+w.requests
	slices.Sort(w.latencies)
	return w
}

// add adds what became of later requests.
func (w *window) add(later window) {
	w.requests, w.failed, w.lasted = w.requests+later.requests, w.failed+later.failed, w.lasted+later.lasted
	w.latencies = append(w.latencies, later.latencies...)
	slices.Sort(w.latencies)
}

// share is the latency that a share of the requests stayed below.
func (w window) share(of float64) time.Duration {
	if len(w.latencies) == 0 {
		return 0
	}
	return w.latencies[int(of*float64(len(w.latencies)-1))]
}
