package main

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// output is stdout, which remembers the first failure to write to it: what a command shows
// a person is written in many places, and none of them asks.
type output struct {
	to io.Writer

	mu     sync.Mutex
	failed error
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.to.Write(p)
	if err != nil && o.failed == nil {
		o.failed = fmt.Errorf("write output: %w", err)
	}
	return n, err //nolint:wrapcheck // a writer's own
}

// To is where it goes.
func (o *output) To() io.Writer { return o.to }

// failure is why not all of it was written.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// fileOf is the file that an output, or a log's queue, writes to.
func fileOf(w io.Writer) (file *os.File, ok bool) {
	if before, is := w.(interface{ To() io.Writer }); is {
		w = before.To()
	}
	file, ok = w.(*os.File)
	return file, ok
}
