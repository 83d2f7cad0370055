package otlp

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// sampled is a forwarded message that differs from the received one: it has only the sampled traces, or the counted
// marker. It is the zero value if the received message is forwarded.
type sampled struct {
	reserved    *bodies.Body // memory reserved for body; nil once body is written
	body        *bodies.Body // message in protobuf; compressed with gzip if the received message was compressed
	compression bodies.Compression
	isEmpty     bool // whether all traces are sampled out, so that nothing is forwarded
}

// releaseUnused releases the reserved memory if no message has been written into it.
func (k *sampled) releaseUnused() {
	if k.reserved != nil {
		k.reserved.Release()
		k.reserved = nil
	}
}

// selectSpans selects the spans of a call to forward, and reserves memory for their message. It has to be called before
// the spans are counted, so that a call without memory can be refused and retried.
func (s *Server) selectSpans(c *call, w *worker) (selection sampling.Selection, refusal *reply) {
	selection.IsUnchanged = true
	if s.config.Keep == nil && !s.config.Marks {
		return selection, nil
	}
	selection = w.sample.Select(w.reader.Request(), s.config.Keep, s.config.Marks)
	switch {
	case selection.IsUnchanged || s.isEmpty(selection):
		return selection, nil
	case c.Size()+selection.Size > s.config.MaxBodyBytes:
		return selection, refuse(ResultTooLarge, otlpanswer.ResourceExhausted, "the request and its sampled "+
			"part together exceed --otlp-max-body-bytes; configure smaller batches in the SDK, or raise it")
	}
	if c.sampled.reserved = s.Bodies.Take(selection.Size); c.sampled.reserved == nil {
		return selection, s.refuseUnreadable(bodies.ErrNoRoom, ResultBusy)
	}
	return selection, nil
}

// isEmpty reports whether a selection has no spans, so that nothing is forwarded.
func (s *Server) isEmpty(selection sampling.Selection) bool {
	return s.config.Keep != nil && !selection.IsUnchanged && selection.Sampled.Spans == 0
}

// writeSelected writes the message with the selected spans of a counted call, unless it equals the received message.
// It then releases the received message, since the upstream can take long to respond. A duplicate is not added to the
// sampling statistics.
func (s *Server) writeSelected(c *call, w *worker, selection sampling.Selection, isDuplicate bool) {
	saved := 0 // bytes that are not forwarded
	switch {
	case selection.IsUnchanged:
	case s.isEmpty(selection):
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
		s.sampling.note(selection.Sampled, selection.SampledOut, saved)
	}
}

// compress compresses the sampled message if the received message was compressed and there is memory for the result.
// It always uses gzip, since every OTLP server supports gzip.
func (s *Server) compress(c *call, w *worker) {
	if c.compression == bodies.Plain {
		return
	}
	compressed := c.Own(s.Bodies.Take(maxCompressedBytes(len(c.sampled.body.Bytes))))
	if compressed == nil {
		return
	}
	w.compressor.appendCompressed(compressed, c.sampled.body.Bytes)
	c.sampled.body.Release()
	c.sampled.body, c.sampled.compression = compressed, bodies.Gzip
}

// compressor compresses with gzip. It reuses its memory of about 1 MiB.
type compressor struct{ gzip *gzip.Writer }

// maxCompressedBytes returns the maximum length of n bytes after compression with gzip. Incompressible bytes grow by
// five bytes per stored block, and by the header and the trailer.
func maxCompressedBytes(n int) int { return n + n/1000 + 1<<10 }

// appendCompressed appends the compressed message to body, which needs a free capacity of maxCompressedBytes.
func (p *compressor) appendCompressed(body *bodies.Body, message []byte) {
	buffer := bytes.NewBuffer(body.Bytes)
	if p.gzip == nil {
		p.gzip, _ = gzip.NewWriterLevel(buffer, gzip.BestSpeed) // fails only for an invalid level
	} else {
		p.gzip.Reset(buffer)
	}
	_, _ = p.gzip.Write(message) // a bytes.Buffer never returns an error
	_ = p.gzip.Close()
	body.Bytes = buffer.Bytes()
}
