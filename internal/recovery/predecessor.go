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
	// A client that reconnects within keptFor can still ask about the outcomes of its spans, unless more
	// than mostKept daemons have crashed since.
	keptFor  = 10 * time.Minute
	mostKept = 16

	mostRecords = 1 << 17 // maximum number of records in a valid file

	// comesBack is how long a daemon waits for the clients of a crashed one to reconnect. Clients try
	// every few seconds. After this time the spans of a client that has not reconnected count as lost.
	comesBack = time.Minute
)

// Predecessor is the content of the recovery file of a daemon that was killed. Only isBack changes.
type Predecessor struct {
	name    string
	layout  *layout // nil if the file can't be read
	records []*record
	isBack  []bool // by record, whether the client has reconnected
	isNew   bool   // no earlier daemon has reported the crash
}

// predecessors are the daemons of a socket that were killed.
type predecessors struct {
	prefix string // prefix of all recovery files of the socket

	mu      sync.Mutex // guards crashed, found and Predecessor.isBack
	crashed []*Predecessor
	found   time.Time // when find was called
}

// find reads the recovery files of crashed daemons. died contains the names of the daemons whose
// crash no earlier daemon has reported. A file that can't be read is part of err.
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
		found, readErr := p.read(name)
		err = errors.Join(err, readErr)
		if found == nil {
			continue
		}
		p.crashed = append(p.crashed, found)
		if found.isNew {
			died = append(died, found.name)
		}
	}
	return died, err
}

// markReported renames the files of reported crashes, so that later daemons do not report them
// again. It removes old files.
func (p *predecessors) markReported() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.crashed {
		name := p.prefix + d.name
		if !d.isNew {
			continue
		}
		renameErr := os.Rename(name, name+readSuffix)
		if renameErr != nil && !errors.Is(renameErr, fs.ErrNotExist) { // if it does not exist, it was renamed before
			err = errors.Join(err, fmt.Errorf("rename running file: %w", renameErr))
		}
		_ = os.Chtimes(name+readSuffix, time.Time{}, time.Now()) // forget computes the file's age from this
	}
	return errors.Join(err, p.forget())
}

// isAwaitingClients reports whether clients of crashed daemons are still expected to reconnect.
func (p *predecessors) isAwaitingClients() bool { return time.Since(p.found) < comesBack }

// readSuffix is appended to the names of reported files.
const readSuffix = ".read"

// read reads a recovery file. It returns nil if the file's daemon is running, or has just shut
// down.
func (p *predecessors) read(name string) (*Predecessor, error) {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // its daemon has shut down since the directory was read
	}
	if err != nil {
		return nil, fmt.Errorf("look at running file: %w; remove %s if no daemon runs", err, name)
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if isRunning := tryLock(file) != nil; isRunning {
		return nil, nil
	}
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // its daemon has shut down between Open and Flock
	}
	base, wasRead := strings.CutSuffix(name, readSuffix)
	found := &Predecessor{name: strings.TrimPrefix(base, p.prefix), isNew: !wasRead}
	found.layout, found.records = contents(file)
	found.isBack = make([]bool, len(found.records))
	return found, nil
}

// contents parses a recovery file, and returns the records that are in use. It returns nil if the
// file has another layout or is truncated.
func contents(file *os.File) (*layout, []*record) {
	in, l := bufio.NewReader(file), new(layout)
	_, err := io.ReadFull(in, bytesOf(l)) // reads the words of l
	if err != nil || l.magic.Load() != magic || l.records.Load() > mostRecords {
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

// bytesOf returns the memory of a struct as bytes. A write to them changes the struct.
func bytesOf[T layout | record](s *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(s)), unsafe.Sizeof(*s))
}

// forget removes reported files that are older than keptFor, and the oldest ones if there are more
// than mostKept.
func (p *predecessors) forget() (err error) {
	type kept struct {
		name string
		read time.Time
	}
	var all []kept
	names, _ := filepath.Glob(escapeGlob(p.prefix) + "*" + readSuffix)
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
		removeErr := os.Remove(k.name)
		if removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove running file: %w", removeErr))
		}
	}
	return err
}

// escapeGlob returns a pattern that matches only path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// earlier returns the outcomes of a connection's spans, in the encoding of wire.Outcomes. name is the
// name of the crashed daemon, and id the ID of the connection's record. earlier returns nil if it
// does not know them. If the file of the daemon is invalid, all spans are in doubt.
func (p *predecessors) earlier(name string, id uint64) []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.crashed {
		if d.name != name {
			continue
		}
		if d.layout == nil {
			return wire.AppendOutcome(wire.AppendOutcome(nil, 0, wire.Settled), math.MaxInt64, wire.Doubtful)
		}
		for i := range d.records {
			if d.records[i].id.Load() == id {
				if p.isAwaitingClients() { // otherwise its spans count as lost already
					d.isBack[i] = true
				}
				return d.outcomes(d.records[i])
			}
		}
	}
	return nil
}

// outcomes returns the outcomes of the spans of a record, in the encoding of wire.Outcomes. It skips
// ranges that are out of order, as in a damaged file.
func (d *Predecessor) outcomes(r *record) []uint64 {
	end := r.settled.Load()
	list := wire.AppendOutcome(nil, end, wire.Settled)
	for m := range r.ranges {
		if m.upTo <= end || m.last < m.first {
			continue
		}
		end = m.upTo
		list = wire.AppendOutcome(list, end, outcomeOf[d.layout.combined(m.first, m.last)])
	}
	return list
}

// outcomeOf contains the outcome of spans by the state of their cycle. A damaged file can contain the
// state 3.
var outcomeOf = [...]wire.Outcome{
	open: wire.Resend, inDoubt: wire.Doubtful, settled: wire.Settled, 3: wire.Doubtful,
}

// Losses counts the spans lost by crashes.
type Losses struct {
	// Unknown is the number of daemons whose losses are unknown, because their files are damaged or of
	// another version.
	Unknown   int             `json:"unreadable_files"`
	Receivers map[string]Loss `json:"receivers"`
	Awaited   uint64          `json:"awaiting_replay"` // unsettled spans of clients that may reconnect
}

// Loss counts the lost spans of one receiver.
type Loss struct {
	Lost      uint64 `json:"lost"`      // no destination has them
	Ambiguous uint64 `json:"ambiguous"` // a destination may have them
}

// Sum returns the sum over all receivers.
func (l *Losses) Sum() (sum Loss) {
	for _, loss := range l.Receivers {
		sum.add(loss)
	}
	return sum
}

// losses returns the losses of the crashes that no earlier daemon has reported. Unsettled spans of
// clients that may still reconnect are in Losses.Awaited, and are lost after comesBack. So the lost
// numbers, which are metrics, never decrease.
func (p *predecessors) losses() Losses {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := Losses{Receivers: map[string]Loss{}}
	var byReceiver [receivers]Loss
	for _, d := range p.crashed {
		if !d.isNew {
			continue
		}
		if isUnreadable := d.layout == nil; isUnreadable {
			all.Unknown++
			continue
		}
		d.addCycleLosses(&byReceiver)
		ofClients := d.clientLoss()
		if p.isAwaitingClients() {
			all.Awaited += ofClients.Lost + ofClients.Ambiguous
		} else {
			byReceiver[Socket].add(ofClients)
		}
	}
	for receiver, loss := range byReceiver {
		all.Receivers[Receiver(receiver).String()] = loss
	}
	return all
}

func (l *Loss) add(more Loss) { l.Lost, l.Ambiguous = l.Lost+more.Lost, l.Ambiguous+more.Ambiguous }

// addCycleLosses adds the lost spans that only the crashed daemon had, by receiver.
func (d *Predecessor) addCycleLosses(losses *[receivers]Loss) {
	for receiver := range losses {
		losses[receiver].Lost += d.layout.older[receiver].Load()
	}
	for i := range d.layout.cycles {
		c := &d.layout.cycles[i]
		state := stateIn(c.state.Load())
		for receiver := range losses {
			losses[receiver].add(lossIn(state, c.spans[receiver].Load()))
		}
	}
}

// clientLoss returns the unsettled spans of clients that have not reconnected. The loss is final only
// after comesBack, because such a client may still keep its spans.
func (d *Predecessor) clientLoss() (loss Loss) {
	for i, r := range d.records {
		if d.isBack[i] {
			continue
		}
		end := r.settled.Load()
		for m := range r.ranges {
			if m.upTo > end && m.last >= m.first {
				loss.add(lossIn(d.layout.combined(m.first, m.last), m.upTo-end))
				end = m.upTo
			}
		}
	}
	return loss
}

// lossIn returns the loss of spans in cycles with the given state.
func lossIn(s cycleState, spans uint64) Loss {
	switch s {
	case settled:
		return Loss{}
	case open:
		return Loss{Lost: spans}
	}
	return Loss{Ambiguous: spans}
}
