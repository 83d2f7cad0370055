package otlp

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
)

// ParseKeeping reads which traces go on: a share, and what goes on beside it, such as
// 0.05,errors,slow:500ms.
func ParseKeeping(text string) (k sampling.Keeping, err error) {
	share, more, hasMore := strings.Cut(text, ",")
	if k.Share, err = strconv.ParseFloat(share, 64); err != nil {
		return k, fmt.Errorf("parse otlp-keep: %q does not begin with a share of traces; give 0.05, or "+
			"0.05,errors,slow:500ms", text)
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
	room *bodies.Body // for that, before it is written
	// a message in protobuf, of gzip where the call's was; nil where all goes on as it came
	body     *bodies.Body
	isPacked bool
	isEmpty  bool // nothing goes on
}

// giveUp gives the room back that nothing was written into.
func (k *kept) giveUp() {
	if k.room != nil {
		k.room.Release()
		k.room = nil
	}
}

// keeping counts what went on and what did not.
type keeping struct {
	keptTraces, keptSpans, goneTraces, goneSpans, savedBytes atomic.Uint64
}

// note counts a call's, where it is not counted before.
func (k *keeping) note(on, gone sampling.Tally, saved int) {
	k.keptTraces.Add(uint64(on.Traces))
	k.keptSpans.Add(uint64(on.Spans))
	k.goneTraces.Add(uint64(gone.Traces))
	k.goneSpans.Add(uint64(gone.Spans))
	k.savedBytes.Add(uint64(max(0, saved)))
}

// errNeverFits says that there is never room for what goes on of a call beside the call itself.
var errNeverFits = fmt.Errorf("%w: what goes on of it", bodies.ErrTooLarge)

// measure finds out what of a call that was read goes on, and takes the room for it where that
// is written anew, before anything is counted: a call that finds none is tried again as a
// whole.
func (s *Server) measure(c *call, w *worker) (left sampling.Left, err error) {
	left.IsWhole = true
	if s.config.Keep == nil && !s.config.Marks {
		return left, nil
	}
	left = w.sample.Measure(w.reader.request(), s.config.Keep, s.config.Marks)
	switch {
	case left.IsWhole || s.endsAll(left):
		return left, nil
	case c.Size()+left.Size > s.config.MaxBodyBytes:
		return left, errNeverFits
	}
	if c.kept.room = s.Bodies.Take(left.Size); c.kept.room == nil {
		return left, bodies.ErrNoRoom
	}
	return left, nil
}

// endsAll says whether no trace goes on.
func (s *Server) endsAll(left sampling.Left) bool {
	return s.config.Keep != nil && !left.IsWhole && left.Kept.Spans == 0
}

// keep leaves of a counted call what goes on. The memory of what came is given back, since an
// answer may take its time.
func (s *Server) keep(c *call, w *worker, left sampling.Left, isCountedBefore bool) {
	came := len(c.message)
	switch {
	case left.IsWhole:
		came = 0
	case s.endsAll(left):
		c.kept.isEmpty = true
		c.Release()
	default:
		c.kept.room.Bytes = w.sample.AppendLeft(c.kept.room.Bytes)
		c.Release()
		c.message, c.protobuf = nil, nil
		c.kept.body, c.kept.room = c.Keep(c.kept.room), nil
		s.pack(c, w)
		came -= len(c.kept.body.Bytes)
	}
	if s.config.Keep != nil && !isCountedBefore {
		s.kept.note(left.Kept, left.Gone, came)
	}
}

// pack has what was written go on, compressed where the call was and there is room for that.
func (s *Server) pack(c *call, w *worker) {
	if !c.isPacked {
		return
	}
	packed := c.Keep(s.Bodies.Take(packedBytes(len(c.kept.body.Bytes))))
	if packed == nil {
		return
	}
	w.packer.pack(packed, c.kept.body.Bytes)
	c.kept.body.Release()
	c.kept.body, c.kept.isPacked = packed, true
}

// packer packs with gzip. Its memory, about a MiB, serves one message after the other.
type packer struct{ gzip *gzip.Writer }

// packedBytes is the most that packing makes of so many bytes: five for each block that is
// stored as it is, and what stands around them.
func packedBytes(n int) int { return n + n/1000 + 1<<10 }

// pack appends a message to a body with room for it.
func (p *packer) pack(to *bodies.Body, message []byte) {
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
