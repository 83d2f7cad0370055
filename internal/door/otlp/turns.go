package otlp

import "sync"

// turns are the workers, which senders are given in turn: one that sends much waits for itself, and
// another for one body of each sender at most. As many wait as there are requests under way.
type turns struct {
	mu      sync.Mutex
	free    []*worker
	waiting []*queue // nobody waits while a worker is free
}

// queue is the requests of one sender that wait.
type queue struct {
	sender   any
	requests []chan *worker
}

// take waits for a worker.
func (t *turns) take(sender any) *worker {
	t.mu.Lock()
	if last := len(t.free) - 1; last >= 0 {
		defer t.mu.Unlock()
		w := t.free[last]
		t.free = t.free[:last]
		return w
	}
	given := make(chan *worker, 1)
	t.queueOf(sender, given)
	t.mu.Unlock()
	return <-given
}

func (t *turns) queueOf(sender any, given chan *worker) {
	for _, q := range t.waiting {
		if q.sender == sender {
			q.requests = append(q.requests, given)
			return
		}
	}
	t.waiting = append(t.waiting, &queue{sender, []chan *worker{given}})
}

// give hands a worker to the sender whose turn it is.
func (t *turns) give(w *worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.free = append(t.free, w)
		return
	}
	q := t.waiting[0]
	t.waiting = t.waiting[1:]
	q.requests[0] <- w
	if q.requests = q.requests[1:]; len(q.requests) > 0 {
		t.waiting = append(t.waiting, q)
	}
}
