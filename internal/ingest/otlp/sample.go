package otlp

import (
	"bytes"
	"compress/gzip"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// sampled is the forwarded message if it is not the received one: some of its traces, or all of them with the mark.
type sampled struct {
	reserved    *bodies.Body // memory for body before it is written
	body        *bodies.Body // in protobuf, compressed with gzip if the call was compressed
	compression bodies.Compression
	isEmpty     bool // nothing is forwarded
}

// releaseUnused releases memory that nothing was written into.
func (k *sampled) releaseUnused() {
	if k.reserved != nil {
		k.reserved.Release()
		k.reserved = nil
	}
}

// selectSpans chooses the spans of a call that are forwarded, and reserves memory for writing them, before anything is
// counted: a call that finds no memory is retried as a whole.
func (s *Server) selectSpans(c *call, w *worker) (part sampling.Selection, no *reply) {
	part.IsUnchanged = true
	if s.config.Keep == nil && !s.config.Marks {
		return part, nil
	}
	part = w.sample.Select(w.reader.Request(), s.config.Keep, s.config.Marks)
	switch {
	case part.IsUnchanged || s.isEmpty(part):
		return part, nil
	case c.Size()+part.Size > s.config.MaxBodyBytes:
		return part, refuse(ResultTooLarge, otlpanswer.ResourceExhausted, "what goes on of the request "+
			"finds no room beside it; have the SDK export less at a time, or raise --otlp-max-body-bytes")
	}
	if c.sampled.reserved = s.Bodies.Take(part.Size); c.sampled.reserved == nil {
		return part, s.notRead(bodies.ErrNoRoom, ResultBusy)
	}
	return part, nil
}

// isEmpty reports whether no trace is forwarded.
func (s *Server) isEmpty(part sampling.Selection) bool {
	return s.config.Keep != nil && !part.IsUnchanged && part.Sampled.Spans == 0
}

// writeSelected writes the selected spans of a counted call, if they are not the received message. It releases the
// received message, since the upstream may take its time.
func (s *Server) writeSelected(c *call, w *worker, part sampling.Selection, isDuplicate bool) {
	saved := 0 // bytes
	switch {
	case part.IsUnchanged:
	case s.isEmpty(part):
		saved = len(c.message)
		c.sampled.isEmpty = true
		c.Release()
	default:
		saved = len(c.message)
		c.sampled.reserved.Bytes = w.sample.AppendSelected(c.sampled.reserved.Bytes)
		c.Release()
		c.message, c.protobuf = nil, nil
		c.sampled.body, c.sampled.reserved = c.Own(c.sampled.reserved), nil
		s.compress(c, w)
		saved -= len(c.sampled.body.Bytes)
	}
	if s.config.Keep != nil && !isDuplicate {
		s.sampling.note(part.Sampled, part.SampledOut, saved)
	}
}

// compress compresses the sampled message if the call was compressed and there is memory for it: with
// gzip in any case, since every upstream reads that.
func (s *Server) compress(c *call, w *worker) {
	if c.compression == bodies.Plain {
		return
	}
	to := c.Own(s.Bodies.Take(compressedBytes(len(c.sampled.body.Bytes))))
	if to == nil {
		return
	}
	w.compressor.compress(to, c.sampled.body.Bytes)
	c.sampled.body.Release()
	c.sampled.body, c.sampled.compression = to, bodies.Gzip
}

// compressor compresses with gzip. It reuses its memory of about a MiB.
type compressor struct{ gzip *gzip.Writer }

// compressedBytes is the maximum length of n compressed bytes: five bytes per stored block, and the
// header and trailer.
func compressedBytes(n int) int { return n + n/1000 + 1<<10 }

// compress appends a message to a body that has the capacity for it.
func (p *compressor) compress(to *bodies.Body, message []byte) {
	into := bytes.NewBuffer(to.Bytes)
	if p.gzip == nil {
		p.gzip, _ = gzip.NewWriterLevel(into, gzip.BestSpeed) // the level is valid
	} else {
		p.gzip.Reset(into)
	}
	_, _ = p.gzip.Write(message) // memory takes everything
	_ = p.gzip.Close()
	to.Bytes = into.Bytes()
}
