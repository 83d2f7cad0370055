package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// clientTracer publishes through the client library, with labels, or with keys
// that it encoded once.
type clientTracer struct {
	result
	client    *client.Client // nil: it does all but publish
	isShared  bool           // another tracer of the process speaks for the client
	generator *workload.Generator
	drawn     []workload.Snapshot
	batch     []client.Snapshot
	encoded   []*client.EncodedKey // by the workload's key; none: labels
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

// openClient returns a client that has connected. It keeps nothing, so that its Close does not wait for a
// report, which the run asks for itself.
func openClient(socket string, origin span.Origin) (*client.Client, error) {
	c, err := client.Open(client.Config{
		Socket: socket, Origin: origin, Name: "spanstatsd-bench", MaxKept: client.KeepNothing,
	})
	if err != nil {
		return nil, err
	}
	for begun := time.Now(); !c.Stats().Connected; time.Sleep(time.Millisecond) {
		if time.Since(begun) > limit {
			return nil, fmt.Errorf("connect tracer: no daemon at %s within %s", socket, limit)
		}
	}
	return c, nil
}

// publish draws a batch and hands it over; only the handing over is timed. A
// refused batch is lost, as a tracer's would be.
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
	begun := time.Now()
	t.client.Publish(t.batch)
	t.Publish.add(time.Since(begun))
	return nil
}

// flush is the client's own business: it sends what is full, or old enough.
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
