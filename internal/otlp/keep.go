package otlp

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/intake"
	"github.com/spanstatsd/spanstatsd/internal/oteltraces"
)

// ParseKeeping reads which traces go on: a share, and what goes on beside it, such as
// 0.05,errors,slow:500ms.
func ParseKeeping(text string) (k oteltraces.Keeping, err error) {
	share, more, hasMore := strings.Cut(text, ",")
	if k.Share, err = strconv.ParseFloat(share, 64); err != nil {
		return k, fmt.Errorf("parse otlp-keep: %q does not begin with a share of traces; give 0.05, or 0.05,errors,slow:500ms", text)
	}
	for word := ""; hasMore; {
		word, more, hasMore = strings.Cut(more, ",")
		duration, isSlow := strings.CutPrefix(word, "slow:")
		switch {
		case word == "errors":
			k.Errors = true
		case isSlow:
			if k.Slow, err = time.ParseDuration(duration); err != nil || k.Slow <= 0 {
				return k, fmt.Errorf("parse otlp-keep: %q is no time of a slow root; give slow:500ms", word)
			}
		default:
			return k, fmt.Errorf("parse otlp-keep: %q is neither errors nor slow:500ms", word)
		}
	}
	if err = k.Check(); err != nil {
		return k, fmt.Errorf("parse otlp-keep: %w", err)
	}
	return k, nil
}

// kept is what of a call goes on where only a part does.
type kept struct {
	body     *intake.Body // a message in protobuf, of gzip where the call's was; nil where all goes on as it came
	isPacked bool
	isEmpty  bool // nothing goes on
}

// keeping counts what went on and what did not.
type keeping struct {
	keptTraces, keptSpans, goneTraces, goneSpans, savedBytes atomic.Uint64
}

// note counts a call's, where it is not counted before.
func (k *keeping) note(on, gone oteltraces.Tally, saved int) {
	k.keptTraces.Add(uint64(on.Traces))
	k.keptSpans.Add(uint64(on.Spans))
	k.goneTraces.Add(uint64(gone.Traces))
	k.goneSpans.Add(uint64(gone.Spans))
	k.savedBytes.Add(uint64(max(0, saved)))
}

// keepRoom takes the room that Keep may need, before anything is counted: a call that
// finds none is tried again as a whole.
func (s *Server) keepRoom(message []byte) (*intake.Body, error) {
	if s.config.Keep == nil {
		return nil, nil
	}
	room := s.bodies.Take(oteltraces.KeptBytes(len(message)))
	if room == nil {
		return nil, intake.ErrNoRoom
	}
	return room, nil
}

// keep leaves of a counted call what goes on, in as much memory as that needs. The rest of the
// call's memory is given back, since an answer may take its time.
func (s *Server) keep(c *call, w *worker, message []byte, room *intake.Body, isCountedBefore bool) {
	left, on, gone := w.counter.Keep(room.Bytes, s.config.Keep)
	if len(message) == 0 || len(left) > 0 && &left[0] == &message[0] { // all goes on as it is
		if !isCountedBefore {
			s.kept.note(on, gone, 0)
		}
		return
	}
	saved := len(c.message)
	if on.Spans == 0 {
		c.kept.isEmpty = true
	} else if c.kept.body = s.bodies.Take(packedBytes(len(left))); c.kept.body == nil {
		return // all goes on, which weighs right as well
	} else {
		w.write(c, left)
		saved -= len(c.kept.body.Bytes)
	}
	if !isCountedBefore {
		s.kept.note(on, gone, saved)
	}
	c.releaseCame()
}

// write writes what goes on of a call, compressed where the call was.
func (w *worker) write(c *call, left []byte) {
	to := c.kept.body
	if c.kept.isPacked = c.isPacked; c.isPacked {
		w.packer.pack(to, left)
	} else {
		to.Bytes = append(to.Bytes, left...)
	}
}

// packer packs with gzip. Its memory, about a MiB, serves one message after the other.
type packer struct{ gzip *gzip.Writer }

// packedBytes is the most that packing makes of so many bytes: five for each block that is
// stored as it is, and what stands around them.
func packedBytes(n int) int { return n + n/1000 + 1<<10 }

// pack appends a message to a body with room for it.
func (p *packer) pack(to *intake.Body, message []byte) {
	into := bytes.NewBuffer(to.Bytes)
	if p.gzip == nil {
		p.gzip, _ = gzip.NewWriterLevel(into, gzip.BestSpeed) // the level is one
	} else {
		p.gzip.Reset(into)
	}
	_, _ = p.gzip.Write(message) // to memory, which takes everything
	_ = p.gzip.Close()
	to.Bytes = into.Bytes()
}
