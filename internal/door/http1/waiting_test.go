package http1

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/eventually"
)

// TestSoManyRequestsWait: as many as may wait do, and one more is answered at once.
func TestSoManyRequestsWait(t *testing.T) {
	stopping := make(chan struct{})
	w := Waiting{MaxWait: time.Hour, Stopping: stopping}
	nobody := func(context.Context) (net.Conn, error) { return nil, errors.New("nobody is there") }
	var waiting sync.WaitGroup
	for range maxWaiting {
		waiting.Go(func() {
			if _, err := w.Dial(t.Context(), nobody); err == nil {
				t.Error("somebody is there")
			}
		})
	}
	eventually.True(t, "all wait that may", func() bool { return w.Waited() == maxWaiting })
	refused := make(chan error, 1)
	go func() {
		_, err := w.Dial(t.Context(), nobody)
		refused <- err
	}()
	eventually.True(t, "one more is answered", func() bool { return len(refused) == 1 })
	if <-refused == nil || w.Waited() != maxWaiting || w.Now() != maxWaiting {
		t.Errorf("%d wait, and %d were allowed to", w.Now(), w.Waited())
	}
	close(stopping)
	waiting.Wait()
}
