package otlp

import (
	"bytes"
	"compress/gzip"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// sampled is the message that is forwarded if it is not the one that came: a part of its traces, or all of
// them with the mark.
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

// measure finds out which part of a call is forwarded, and reserves memory for it, before anything is
// counted: a call that finds none is retried as a whole.
func (s *Server) measure(c *call, w *worker) (left sampling.Rest, no *reply) {
	left.IsWhole = true
	if s.config.Keep == nil && !s.config.Marks {
		return left, nil
	}
	left = w.sample.Measure(w.reader.Request(), s.config.Keep, s.config.Marks)
	switch {
	case left.IsWhole || s.isEmpty(left):
		return left, nil
	case c.Size()+left.Size > s.config.MaxBodyBytes:
		return left, refuse(ResultTooLarge, otlpanswer.ResourceExhausted, "what goes on of the request "+
			"finds no room beside it; have the SDK export less at a time, or raise --otlp-max-body-bytes")
	}
	if c.sampled.reserved = s.Bodies.Take(left.Size); c.sampled.reserved == nil {
		return left, s.notRead(bodies.ErrNoRoom, ResultBusy)
	}
	return left, nil
}

// isEmpty reports whether no trace is forwarded.
func (s *Server) isEmpty(left sampling.Rest) bool {
	return s.config.Keep != nil && !left.IsWhole && left.Kept.Spans == 0
}

// sample writes the part of a counted call that is forwarded. It releases the message that came, since the
// upstream may take its time.
func (s *Server) sample(c *call, w *worker, left sampling.Rest, isDuplicate bool) {
	came := len(c.message)
	switch {
	case left.IsWhole:
		came = 0
	case s.isEmpty(left):
		c.sampled.isEmpty = true
		c.Release()
	default:
		c.sampled.reserved.Bytes = w.sample.AppendRest(c.sampled.reserved.Bytes)
		c.Release()
		c.message, c.protobuf = nil, nil
		c.sampled.body, c.sampled.reserved = c.Own(c.sampled.reserved), nil
		s.compress(c, w)
		came -= len(c.sampled.body.Bytes)
	}
	if s.config.Keep != nil && !isDuplicate {
		s.sampling.note(left.Kept, left.Dropped, came)
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
