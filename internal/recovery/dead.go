package recovery

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/unix"
)

const (
	// keptFor is how long a client may stay away and still be told what became of its spans, and
	// mostKept how many daemons may have died meanwhile.
	keptFor  = 10 * time.Minute
	mostKept = 16

	mostRecords = 1 << 17 // of a file that is read

	// comesBack is how long a client has to come back before what it had handed over counts as lost. It
	// tries every few seconds.
	comesBack = time.Minute
)

// Dead is what a daemon that was killed has left. It does not change, but for who has come back.
type Dead struct {
	name    string
	layout  *layout // nil: nobody knows how far it was
	records []*record
	isBack  []bool // by record
	isNew   bool   // no daemon before this one has said so
}

// predecessors are the daemons of a socket that were killed.
type predecessors struct {
	prefix string // of the names of all running files of the socket

	mu    sync.Mutex // guards the next two, and who is back
	dead  []*Dead
	found time.Time
}

// find reads what they have left, and returns the names of those that nobody has said before.
func (p *predecessors) find() (died []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(p.prefix))
	if err != nil {
		return nil, fmt.Errorf("look for running files: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = time.Now()
	for _, entry := range entries {
		name := filepath.Join(filepath.Dir(p.prefix), entry.Name())
		if !strings.HasPrefix(name, p.prefix) || !entry.Type().IsRegular() {
			continue
		}
		dead, bad := p.read(name)
		err = errors.Join(err, bad)
		if dead == nil {
			continue
		}
		p.dead = append(p.dead, dead)
		if dead.isNew {
			died = append(died, dead.name)
		}
	}
	return died, err
}

// said has no later daemon say again who died. The files stay for a while.
func (p *predecessors) said() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.dead {
		name := p.prefix + d.name
		if !d.isNew {
			continue
		}
		bad := os.Rename(name, name+readSuffix)
		if bad != nil && !errors.Is(bad, fs.ErrNotExist) { // it was said before, or its directory is gone
			err = errors.Join(err, fmt.Errorf("rename running file: %w", bad))
		}
		_ = os.Chtimes(name+readSuffix, time.Time{}, time.Now()) // from now on it is kept for a while
	}
	return errors.Join(err, p.forget())
}

// isAwaited says whether clients may still come back.
func (p *predecessors) isAwaited() bool { return time.Since(p.found) < comesBack }

// readSuffix is behind the name of a file that a daemon has read.
const readSuffix = ".read"

// read reads a running file, unless its daemon lives.
func (p *predecessors) read(name string) (*Dead, error) {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // its daemon is done by now
	}
	if err != nil {
		return nil, fmt.Errorf("look at running file: %w; remove %s if no daemon runs", err, name)
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if tryLock(file) != nil {
		return nil, nil
	}
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // its daemon was done between the two
	}
	base, wasRead := strings.CutSuffix(name, readSuffix)
	dead := &Dead{name: strings.TrimPrefix(base, p.prefix), isNew: !wasRead}
	dead.layout, dead.records = contents(file)
	dead.isBack = make([]bool, len(dead.records))
	return dead, nil
}

// contents are the words of a file, of connections only those that there were; none where they are not
// of this layout.
func contents(file *os.File) (*layout, []*record) {
	in, l := bufio.NewReader(file), new(layout)
	if _, err := io.ReadFull(in, bytesOf(l)); err != nil || l.magic.Load() != magic ||
		l.records.Load() > mostRecords {
		return nil, nil
	}
	var records []*record
	for range l.records.Load() {
		r := new(record)
		if _, err := io.ReadFull(in, bytesOf(r)); err != nil {
			return nil, nil
		}
		if r.id.Load() != 0 {
			records = append(records, r)
		}
	}
	return l, records
}

// bytesOf are the bytes of words.
func bytesOf[T layout | record](words *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(words)), unsafe.Sizeof(*words))
}

// forget removes the files that were kept for long enough, and the oldest where there are too many.
func (p *predecessors) forget() (err error) {
	type kept struct {
		name string
		read time.Time
	}
	var all []kept
	names, _ := filepath.Glob(escaped(p.prefix) + "*" + readSuffix)
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			all = append(all, kept{name, info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return b.read.Compare(a.read) })
	for i, k := range all {
		if i < mostKept && time.Since(k.read) < keptFor {
			continue
		}
		if bad := os.Remove(k.name); bad != nil && !errors.Is(bad, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove running file: %w", bad))
		}
	}
	return err
}

// escaped is a path that stands for itself in a pattern.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// earlier says what became of the spans of the connection with an id of a daemon of that name. Where its file
// can't be read any of them may have been delivered.
func (p *predecessors) earlier(name string, id uint64) []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.dead {
		if d.name != name {
			continue
		}
		if d.layout == nil {
			return wire.AppendOutcome(wire.AppendOutcome(nil, 0, wire.Settled), math.MaxInt64, wire.Doubtful)
		}
		for i := range d.records {
			if d.records[i].id.Load() == id {
				d.isBack[i] = d.isBack[i] || p.isAwaited() // else it counts as lost already
				return d.outcomes(d.records[i])
			}
		}
	}
	return nil
}

// outcomes are those of a connection's spans. What a damaged file says out of order is left out.
func (d *Dead) outcomes(r *record) []uint64 {
	at := r.settled.Load()
	list := wire.AppendOutcome(nil, at, wire.Settled)
	for m := range r.ranges {
		if m.upTo <= at || m.last < m.first {
			continue
		}
		at = m.upTo
		list = wire.AppendOutcome(list, at, outcomeOf[d.layout.combined(m.first, m.last)])
	}
	return list
}

var outcomeOf = [...]wire.Outcome{
	open: wire.Resend, doubtful: wire.Doubtful, settled: wire.Settled, 3: wire.Doubtful,
}

// Losses is what daemons that were killed have taken with them, in spans.
type Losses struct {
	// Unknown is of how many nobody knows it, because their files are another version's, or damaged.
	Unknown int             `json:"unknown_daemons"`
	Doors   map[string]Loss `json:"doors"`
	Awaited uint64          `json:"awaited"` // that clients had handed over and may come back with
}

// Loss is what was lost by one door.
type Loss struct {
	Lost      uint64 `json:"lost"`      // no destination has them
	Ambiguous uint64 `json:"ambiguous"` // one may have
}

// Sum is over all doors.
func (l *Losses) Sum() (sum Loss) {
	for _, loss := range l.Doors {
		sum.add(loss)
	}
	return sum
}

// losses are those of the daemons that nobody has read before this one. They never fall.
func (p *predecessors) losses() Losses {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := Losses{Doors: map[string]Loss{}}
	var by [doors]Loss
	for _, d := range p.dead {
		switch {
		case !d.isNew:
		case d.layout == nil:
			all.Unknown++
		default:
			d.countCycles(&by)
			connected := d.connected()
			if p.isAwaited() {
				all.Awaited += connected.Lost + connected.Ambiguous
			} else {
				by[Socket].add(connected)
			}
		}
	}
	for door := range by {
		all.Doors[Door(door).String()] = by[door]
	}
	return all
}

func (l *Loss) add(more Loss) { l.Lost, l.Ambiguous = l.Lost+more.Lost, l.Ambiguous+more.Ambiguous }

// countCycles counts what lies in cycles that are not settled.
func (d *Dead) countCycles(by *[doors]Loss) {
	for door := range by {
		by[door].Lost += d.layout.older[door].Load()
	}
	for i := range d.layout.cycles {
		c := &d.layout.cycles[i]
		for door := range by {
			by[door].add(lossIn(state(c.state.Load()&3), c.spans[door].Load()))
		}
	}
}

// connected is what clients had handed over that were connected, and have not come back.
func (d *Dead) connected() (loss Loss) {
	for i, r := range d.records {
		if d.isBack[i] {
			continue
		}
		before := r.settled.Load()
		for m := range r.ranges {
			if m.upTo > before && m.last >= m.first {
				loss.add(lossIn(d.layout.combined(m.first, m.last), m.upTo-before))
				before = m.upTo
			}
		}
	}
	return loss
}

func lossIn(s state, spans uint64) Loss {
	switch s {
	case settled:
		return Loss{}
	case open:
		return Loss{Lost: spans}
	}
	return Loss{Ambiguous: spans}
}
