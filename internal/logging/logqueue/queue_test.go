package logqueue_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/logging/logqueue"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// end is a log that accepts lines, stalls, or rejects them.
type end struct {
	mu      sync.Mutex
	text    bytes.Buffer
	stalled chan struct{} // closed when the log accepts lines again
	refuses bool
}

func newEnd() *end { return &end{stalled: make(chan struct{})} }

func (e *end) Write(p []byte) (int, error) {
	<-e.stalled
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuses {
		return 0, errors.New("broken pipe")
	}
	return e.text.Write(p)
}

func (e *end) refuse(refuses bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refuses = refuses
}

func (e *end) lines() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Count(e.text.String(), "\n")
}

// Lines of several goroutines are written completely, and in order for each goroutine. Close waits for them.
func TestLines_ArriveWhole(t *testing.T) {
	e := newEnd()
	close(e.stalled)
	q := logqueue.New(e)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 100 {
				fmt.Fprintf(q, "%d %d\n", w, i)
			}
		})
	}
	writers.Wait()
	q.Close(time.Minute)
	var next [4]int
	for line := range strings.Lines(e.text.String()) {
		var w, i int
		if _, err := fmt.Sscanf(line, "%d %d\n", &w, &i); err != nil || next[w] != i {
			t.Fatalf("line %q: %v, want number %d", line, err, next[w])
		}
		next[w]++
	}
	if next != [4]int{100, 100, 100, 100} || q.Lost() != 0 {
		t.Errorf("lines %v, lost %d", next, q.Lost())
	}
}

// A stalled log blocks no writer: lines over the limit are counted, and the numbers of written and lost lines add up.
// When the log accepts lines again, the number of lost lines is reported first.
func TestStalled_LostLinesAreCounted(t *testing.T) {
	e := newEnd()
	q := logqueue.New(e)
	var mu sync.Mutex
	reported := uint64(0)
	q.OnLost(func(lines uint64) {
		mu.Lock()
		defer mu.Unlock()
		reported += lines
	})
	line := []byte(strings.Repeat("x", 99) + "\n")
	const logged = 3 * logqueue.Limit / 100
	for range logged {
		if n, err := q.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	lost := q.Lost()
	if room := uint64(2*logqueue.Limit/100 + 2); lost < logged-room {
		t.Errorf("%d of %d lines lost: more than %d bytes wait", lost, logged, logqueue.Limit)
	}
	close(e.stalled)
	eventually.True(t, "all lines are accounted for",
		func() bool { return uint64(e.lines())+q.Lost() == logged })
	eventually.True(t, "the loss is reported", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return reported == lost
	})
}

// A log that rejects lines counts every line as lost, and continues when it accepts lines again.
func TestRefused_LinesAreCounted(t *testing.T) {
	e := newEnd()
	close(e.stalled)
	e.refuse(true)
	q := logqueue.New(e)
	fmt.Fprintln(q, "one")
	fmt.Fprint(q, "two\nthree\n")
	eventually.True(t, "three lines lost", func() bool { return q.Lost() == 3 })
	e.refuse(false)
	fmt.Fprintln(q, "four")
	eventually.True(t, "the next arrives", func() bool { return e.lines() == 1 })
}

// Close of a stalled log returns, and lines that are written afterwards are lost.
func TestClose_StalledLog(t *testing.T) {
	q := logqueue.New(newEnd())
	fmt.Fprintln(q, "never read")
	q.Close(time.Millisecond)
	fmt.Fprintln(q, "too late")
	if q.Lost() == 0 {
		t.Error("a line after Close is counted nowhere")
	}
}
