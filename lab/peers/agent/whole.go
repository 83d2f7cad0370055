package agent

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/workload"
	"github.com/tinylib/msgp/msgp"
)

// The complete measurement has the same start and end as the daemon's: from the bytes that a
// tracer writes to a socket to the payload with their statistics. It excludes the agent's HTTP
// handling, its sampling of traces, and the compression of the payload.

// AppendBody appends a trace as a tracer sends it (/v0.4/traces), preceded by its length.
func AppendBody(dst []byte, spans []workload.Snapshot) ([]byte, error) {
	at := len(dst)
	dst, err := pb.Traces{Spans(spans)}.MarshalMsg(append(dst, make([]byte, 4)...))
	if err != nil {
		return nil, fmt.Errorf("encode trace: %w", err)
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst, nil
}

// Whole is the result of CountWhole, with its cost in this process.
type Whole struct {
	Spans, Groups uint64
	CPU           float64 // nanoseconds per span

	body []byte // reused read buffer
}

// CountWhole counts the spans of all bodies read from a socket.
func CountWhole(from io.Reader) (w Whole, err error) {
	concentrator, err := newConcentrator(workload.AdditionalTags[:])
	if err != nil {
		return w, err
	}
	treat := newTreatment()
	spent, err := measure.Of(func() error {
		for bodies := bufio.NewReaderSize(from, 64<<10); err == nil; {
			err = w.countBody(bodies, concentrator, treat)
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		payload := concentrator.Flush(true)
		for _, client := range payload.Stats {
			for i := range client.Stats {
				w.Groups += uint64(len(client.Stats[i].Stats))
			}
		}
		if err := msgp.Encode(io.Discard, payload); err != nil {
			return fmt.Errorf("encode payload: %w", err)
		}
		return nil
	})
	w.CPU = float64(spent.CPU) / float64(max(w.Spans, 1))
	return w, err
}

// countBody counts the next body as the agent's receiver does: it reads the complete body, then
// decodes it.
func (w *Whole) countBody(from io.Reader, concentrator *stats.Concentrator, treat func(*pb.Span)) error {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return err //nolint:wrapcheck // its end
	}
	w.body = append(w.body[:0], make([]byte, binary.BigEndian.Uint32(length[:]))...)
	if _, err := io.ReadFull(from, w.body); err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	var traces pb.Traces
	if _, err := traces.UnmarshalMsg(w.body); err != nil {
		return fmt.Errorf("decode body: %w", err)
	}
	for _, trace := range traces {
		for _, s := range trace {
			treat(s)
		}
		concentrator.Add(inputOf(trace))
		w.Spans += uint64(len(trace))
	}
	return nil
}
