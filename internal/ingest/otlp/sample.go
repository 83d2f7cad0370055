package otlp

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// sampled is a forwarded message that differs from the received one, because it contains only the sampled traces, or
// marks its spans as counted. It is the zero value if the received message is forwarded.
type sampled struct {
	reserved    *bodies.Body // memory reserved for body; nil once body is written
	body        *bodies.Body // message in protobuf; compressed with gzip if the received message was compressed
	compression bodies.Compression
	isEmpty     bool // whether all traces are sampled out, so that nothing is forwarded
}

// releaseReserved releases the reserved memory, unless a message has been written into it.
func (m *sampled) releaseReserved() {
	if m.reserved != nil {
		m.reserved.Release()
		m.reserved = nil
	}
}

// selectSpans decides which spans of a request are forwarded. If some spans are sampled out, or if they must be marked
// as counted, a new message must replace the received one. selectSpans reserves the memory for the new message. It
// returns an error reply if there is not enough memory.
func (s *Server) selectSpans(c *call, ws *workspace) (selection sampling.Selection, refusal *reply) {
	samplingPolicy := s.config.Keep
	addMarks := s.config.MarksCounted // whether to add an attribute that marks the spans as counted
	if samplingPolicy == nil && !addMarks {
		return sampling.Selection{IsUnchanged: true}, nil
	}
	selection = ws.sample.Select(ws.reader.Request(), samplingPolicy, addMarks)
	needsNewMessage := !selection.IsUnchanged && !s.isNothingSelected(selection)
	if needsNewMessage {
		refusal = s.reserveSampled(c, selection.Size)
	}
	return selection, refusal
}

// reserveSampled reserves memory for a message with only the sampled spans. It returns an error reply if there is not
// enough memory.
func (s *Server) reserveSampled(c *call, messageBytes int) (refusal *reply) {
	requestBytes := c.BodyBytes() + messageBytes
	if requestBytes > s.config.MaxBodyBytes {
		return newRefusal(ResultTooLarge, otlpanswer.ResourceExhausted, "the request and its sampled "+
			"part together exceed --otlp-max-body-bytes; configure smaller batches in the SDK, or raise it")
	}
	c.sampled.reserved = s.Bodies.Take(messageBytes)
	if c.sampled.reserved == nil {
		return s.refuseUnreadable(bodies.ErrNoRoom, ResultBusy)
	}
	return nil
}

// isNothingSelected reports whether a selection has no spans, so that nothing is forwarded.
func (s *Server) isNothingSelected(selection sampling.Selection) bool {
	isSampling := s.config.Keep != nil
	return isSampling && !selection.IsUnchanged && selection.Sampled.Spans == 0
}

// replaceReceived replaces the received message by one with only the selected spans, unless all are selected. It
// releases the memory of the received message. It returns by how many bytes the message to forward is shorter.
func (s *Server) replaceReceived(c *call, ws *workspace, selection sampling.Selection) (savedBytes int) {
	if selection.IsUnchanged {
		return 0
	}
	receivedBytes := len(c.message)
	if s.isNothingSelected(selection) {
		c.sampled.isEmpty = true
		c.releaseReceived()
		return receivedBytes
	}
	c.writeSampled(ws)
	s.compressSampled(c, ws)
	forwardedBytes := len(c.sampled.body.Bytes)
	return receivedBytes - forwardedBytes
}

// writeSampled writes the message with the sampled spans into the reserved memory, which becomes c.sampled.body. Then it
// releases the received message.
func (c *call) writeSampled(ws *workspace) {
	body := c.sampled.reserved
	body.Bytes = ws.sample.AppendSelected(body.Bytes) // copies the spans from the received message
	c.releaseReceived()
	c.sampled.reserved = nil
	c.sampled.body = c.Own(body) // the request releases it after forwarding
}

// releaseReceived releases the memory of the received message, and of its conversion to protobuf.
func (c *call) releaseReceived() {
	c.Release()
	c.message, c.protobuf = nil, nil
}

// compressSampled compresses c.sampled.body if the received message was compressed. It uses gzip, because every OTLP
// server supports gzip. If there is not enough free memory, the message stays uncompressed.
func (s *Server) compressSampled(c *call, ws *workspace) {
	if c.compression == bodies.Plain {
		return
	}
	uncompressed := c.sampled.body
	compressed := s.Bodies.Take(maxCompressedBytes(len(uncompressed.Bytes)))
	hasMemory := compressed != nil
	if !hasMemory {
		return
	}
	c.Own(compressed)
	ws.compressor.appendCompressed(compressed, uncompressed.Bytes)
	uncompressed.Release()
	c.sampled.body = compressed
	c.sampled.compression = bodies.Gzip
}

// compressor compresses with gzip. It reuses its memory of about 1 MiB.
type compressor struct{ gzip *gzip.Writer }

// maxCompressedBytes returns an upper limit for the length of n bytes after compression with gzip. Incompressible
// bytes grow by five bytes per stored block, and by the header and the trailer.
func maxCompressedBytes(n int) int {
	const maxHeaderAndTrailer = 1 << 10
	maxBlockOverhead := n / 1000
	return n + maxBlockOverhead + maxHeaderAndTrailer
}

// appendCompressed compresses message with gzip and appends the result to body.Bytes. The free capacity there must
// be at least maxCompressedBytes(len(message)), so that body.Bytes is not reallocated.
func (p *compressor) appendCompressed(body *bodies.Body, message []byte) {
	output := bytes.NewBuffer(body.Bytes)
	if p.gzip == nil {
		p.gzip, _ = gzip.NewWriterLevel(output, gzip.BestSpeed) // fails only for an invalid level
	} else {
		p.gzip.Reset(output)
	}
	_, _ = p.gzip.Write(message) // a bytes.Buffer never returns an error
	_ = p.gzip.Close()
	body.Bytes = output.Bytes()
}
