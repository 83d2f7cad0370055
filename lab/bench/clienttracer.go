package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// clientTracer publishes through the client library, either labels or keys encoded in advance.
type clientTracer struct {
	result
	client    *client.Client // nil: does everything except publishing
	isShared  bool           // shares the client, which another tracer of the process closes
	generator *workload.Generator
	drawn     []workload.Snapshot
	batch     []client.Snapshot
	encoded   []*client.EncodedKey // by index of the workload's key; empty: publish labels
}

func connectClient(j *job, origin span.Origin, generator *workload.Generator) (*clientTracer, error) {
	t := &clientTracer{
		client: j.client, isShared: j.client != nil, generator: generator, result: newResult(),
		drawn: make([]workload.Snapshot, j.Batch), batch: make([]client.Snapshot, j.Batch),
	}
	if j.Keys == Numbered {
		keys := generator.Keys()
		for i := range keys {
			t.encoded = append(t.encoded, client.EncodeKey(keys[i]))
		}
	}
	if t.isShared || j.Tracer == Bare {
		return t, nil
	}
	var err error
	if t.client, err = openClient(j.Socket, origin); err != nil {
		return nil, err
	}
	if j.OneClient {
		j.client = t.client
	}
	return t, nil
}

// openClient returns a connected client. It keeps no spans for replay, so that Close does not
// wait for a flush, which the run requests itself.
func openClient(socket string, origin span.Origin) (*client.Client, error) {
	c, err := client.Open(client.Config{
		Socket: socket, Origin: origin, Name: "spanstatsd-bench", MaxKept: client.KeepNothing,
	})
	if err != nil {
		return nil, err
	}
	for started := time.Now(); !c.Stats().Connected; time.Sleep(time.Millisecond) {
		if time.Since(started) > limit {
			return nil, fmt.Errorf("connect tracer: no daemon at %s within %s", socket, limit)
		}
	}
	return c, nil
}

// publish draws a batch and publishes it; only publishing is timed. A refused batch is lost, as
// in an application.
func (t *clientTracer) publish(now time.Time) error {
	t.generator.Fill(t.drawn, 0)
	for i := range t.drawn {
		d, s := &t.drawn[i], &t.batch[i]
		if d.Index >= 0 && t.encoded != nil {
			s.Encoded = t.encoded[d.Index]
		} else {
			s.Key = *d.Key
		}
		s.Duration, s.End = time.Duration(d.Duration), now
		s.Error, s.TopLevel = d.Flags&span.Error != 0, d.Flags&span.TopLevel != 0
	}
	if t.client == nil {
		return nil
	}
	t.Attempted += uint64(len(t.batch))
	started := time.Now()
	t.client.Publish(t.batch)
	t.Publish.add(time.Since(started))
	return nil
}

// flush does nothing: the client sends full and old buffers by itself.
func (t *clientTracer) flush() error { return nil }

func (t *clientTracer) close() error {
	if t.client == nil || t.isShared {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := t.client.Close(ctx)
	stats := t.client.Stats()
	t.Handed = stats.Sent
	for _, losses := range []map[string]uint64{stats.Refused, stats.Lost} {
		for reason, spans := range losses {
			t.Refused[reason] += spans
		}
	}
	return err
}
