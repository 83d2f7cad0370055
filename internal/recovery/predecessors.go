package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/unix"
)

const (
	// A client that reconnects within keptFor can still ask about the outcomes of its spans, unless more
	// than mostKept daemons have crashed since.
	keptFor  = 10 * time.Minute
	mostKept = 8

	// mostAtOnce is the maximum number of files that a pass over the directory takes.
	mostAtOnce = 16

	// comesBack is how long a daemon waits for the clients of a crashed one to reconnect. Clients try
	// every few seconds. After this time the spans of a client that has not reconnected count as lost.
	comesBack = time.Minute

	// lookEvery is the time between two passes while there is something to wait for.
	lookEvery = time.Second
)

// stage says which losses of a predecessor have been reported.
type stage uint64

const (
	nothingNamed stage = iota
	crashNamed         // the crash, and the spans that only the daemon had
	allNamed           // spans of clients that have not returned, too
)

// predecessor is a daemon that was killed. This daemon has the lock on its file, so it alone reports the losses.
type predecessor struct {
	name       string
	file       *os.File
	size       int64
	contents   error // why the contents are unknown; nil if they are known
	began      uint64
	records    int             // number of records in use
	lost       [receivers]Loss // spans that only the daemon had
	clients    Loss            // unsettled spans of clients that have not returned
	awaitedTil time.Time
	isSurplus  bool      // there are too many files
	isStuck    bool      // the file can't be removed
	reported   stage     // by this daemon or an earlier one
	written    stage     // part of reported that is in the file
	firstNamed time.Time // when an earlier daemon reported the crash
}

// predecessors are the daemons of a socket that were killed.
type predecessors struct {
	prefix   string // prefix of all recovery files of the socket
	own      string // name of this daemon's file
	log      *slog.Logger
	flushLog func()

	mu       sync.Mutex // guards the rest, and the files
	known    []*predecessor
	warned   map[string]bool // paths that can't be opened
	isLocked bool            // a file is locked: its daemon may be killed while it shuts down
	total    [receivers]Loss
	died     int
	unknown  int
}

// makeRoom removes the files of daemons that were killed, until at most mostKept are left.
func (p *predecessors) makeRoom() {
	for isMore := true; isMore; {
		isMore = p.look()
		p.reportIf(func(d *predecessor) bool { return d.isSurplus })
		isMore = p.note() > 0 && isMore
	}
}

// report looks for crashed predecessors, and reports them.
func (p *predecessors) report() {
	for isMore := true; isMore; {
		isMore = p.look()
		p.reportIf(func(*predecessor) bool { return true })
		isMore = isMore && p.note() > 0
	}
}

// follow notes which losses were reported, and reports the others, until stop is closed. Then it looks once more.
func (p *predecessors) follow(stop <-chan struct{}) {
	defer p.note()
	for isStopping := false; !isStopping; {
		p.note()
		var again <-chan time.Time
		if p.mustLookAgain() {
			again = time.After(lookEvery)
		}
		select {
		case <-again:
		case <-stop:
			isStopping = true
		}
		p.report()
	}
}

func (p *predecessors) mustLookAgain() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isLocked || len(p.known) > 0
}

// look takes the files of daemons that were killed. It reports whether there are more.
func (p *predecessors) look() (isMore bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dir, err := os.Open(filepath.Dir(p.prefix))
	if err != nil {
		p.warnOnce(p.prefix, fmt.Errorf("look for recovery files: %w", err))
		return false
	}
	defer dir.Close()
	p.isLocked = false
	for taken := 0; ; {
		entries, err := dir.ReadDir(mostAtOnce)
		for _, entry := range entries {
			path := filepath.Join(filepath.Dir(p.prefix), entry.Name())
			name, isOurs := strings.CutPrefix(path, p.prefix)
			if !isOurs || name == p.own || p.find(name) != nil || !entry.Type().IsRegular() || isJunk(path, entry) {
				continue
			}
			d, isLocked := p.take(name)
			if p.isLocked = p.isLocked || isLocked; d != nil {
				taken++
			}
		}
		if taken >= mostAtOnce || err != nil {
			p.limit()
			return taken >= mostAtOnce
		}
	}
}

// warnOnce logs an error once per path, because the directory is read repeatedly.
func (p *predecessors) warnOnce(path string, err error) {
	if !p.warned[path] && len(p.warned) < mostAtOnce {
		p.warned[path] = true
		p.log.Warn("can't read the recovery file of a previous daemon, so its losses are unknown", "error", err)
	}
}

// hasNothing reports whether a file has nothing to report, by its name: an earlier version had reported it, or
// its daemon was killed while it created it.
func hasNothing(name string) bool {
	return strings.HasSuffix(name, ".read") || strings.HasSuffix(name, unfinished)
}

// isJunk reports whether a file has nothing to report. It removes the file, unless its daemon may be about to
// start.
func isJunk(path string, entry os.DirEntry) bool {
	if !hasNothing(path) {
		return false
	}
	isNew := strings.HasSuffix(path, unfinished)
	if info, err := entry.Info(); err == nil && (!isNew || time.Since(info.ModTime()) > time.Minute) {
		_ = os.Remove(path) // if it fails, the file stays
	}
	return true
}

func (p *predecessors) find(name string) *predecessor {
	for _, d := range p.known {
		if d.name == name {
			return d
		}
	}
	return nil
}

// take locks and reads a file. It returns nil if there is no such file any more, or if its daemon is running.
func (p *predecessors) take(name string) (d *predecessor, isLocked bool) {
	path := p.prefix + name
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.warnOnce(path, fmt.Errorf("open recovery file: %w; remove %s if no daemon runs", err, path))
		}
		return nil, false
	}
	file := os.NewFile(uintptr(fd), path)
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, false
	}
	isLocked = tryLock(file) != nil
	if _, err := os.Lstat(path); err != nil || isLocked { // its daemon may have shut down between Open and Flock
		file.Close()
		return nil, isLocked
	}
	d = &predecessor{name: name, file: file, size: info.Size()}
	if err := d.read(); err != nil {
		d = &predecessor{name: name, file: file, contents: err}
	}
	d.awaitedTil = time.Now().Add(comesBack)
	p.known = append(p.known, d)
	return d, false
}

// read reads the file, and sums up its losses.
func (d *predecessor) read() error {
	var c contents
	if err := c.read(d.file, d.size); err != nil {
		return err
	}
	d.began, d.written, d.reported = c.began, stage(c.named), stage(c.named)
	if c.found > 0 {
		d.firstNamed = time.Unix(0, int64(c.found))
	}
	err := c.eachRecord(d.file, func(_ int, r *record) error {
		d.records++
		if r.isBack == 0 {
			d.clients.add(c.lossOf(r))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for receiver := range d.lost {
		d.lost[receiver].Lost = c.older[receiver]
		for i := range c.cycles {
			d.lost[receiver].add(lossIn(stateIn(c.cycles[i].state), c.cycles[i].spans[receiver]))
		}
	}
	return nil
}

// limit marks the files that exceed mostKept: first those without connections, then the oldest.
func (p *predecessors) limit() {
	slices.SortStableFunc(p.known, func(a, b *predecessor) int {
		return cmp.Or(-cmp.Compare(min(a.records, 1), min(b.records, 1)), -cmp.Compare(a.began, b.began))
	})
	for i, d := range p.known {
		d.isSurplus = i >= mostKept
	}
}

// reportIf logs and counts losses that are not reported yet, of the predecessors that match.
func (p *predecessors) reportIf(matches func(*predecessor) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.known {
		if !matches(d) {
			continue
		}
		isOver := d.clients == Loss{} || d.isSurplus || time.Now().After(d.awaitedTil)
		if d.reported == nothingNamed {
			d.reported = crashNamed
			p.reportCrash(d, isOver)
		}
		if d.reported == crashNamed && isOver {
			d.reported = allNamed
			p.reportClients(d)
		}
	}
}

// reportCrash reports the crash of a daemon, and the spans that only it had.
func (p *predecessors) reportCrash(d *predecessor, isOver bool) {
	p.died++
	attributes := []any{"daemons", 1, "names", []string{d.name}}
	if d.contents != nil {
		p.unknown++
		attributes = append(attributes, "unreadable_files", 1, "error", d.contents)
	} else if !isOver {
		attributes = append(attributes, "awaiting_replay", d.clients.Lost+d.clients.Ambiguous)
	}
	for receiver, loss := range d.lost {
		p.total[receiver].add(loss)
		attributes = appendLoss(attributes, Receiver(receiver), loss)
	}
	p.log.Warn("the previous daemon crashed or was killed: clients resend the spans that they keep, others "+
		"are lost; look for an out-of-memory kill, or a shutdown that exceeded the grace period", attributes...)
}

// reportClients reports the spans of clients that have not returned.
func (p *predecessors) reportClients(d *predecessor) {
	if d.clients == (Loss{}) {
		return
	}
	p.total[Socket].add(d.clients)
	p.log.Warn("clients of a crashed daemon have not reconnected: the spans that they kept are lost",
		appendLoss([]any{"names", []string{d.name}}, Socket, d.clients)...)
}

func appendLoss(attributes []any, receiver Receiver, loss Loss) []any {
	if loss == (Loss{}) {
		return attributes
	}
	return append(attributes, receiver.String()+"_lost", loss.Lost, receiver.String()+"_ambiguous", loss.Ambiguous)
}

// note writes into the files which losses were reported, after they are in the log, so that no later daemon reports it again.
// It removes the files that no client can ask about, and returns their number.
func (p *predecessors) note() (removed int) {
	p.mu.Lock()
	isNoted := !slices.ContainsFunc(p.known, func(d *predecessor) bool { return d.reported > d.written })
	p.mu.Unlock()
	if !isNoted && p.flushLog != nil {
		p.flushLog()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = slices.DeleteFunc(p.known, func(d *predecessor) (isForgotten bool) {
		if d.reported > d.written {
			if d.firstNamed.IsZero() {
				d.firstNamed = time.Now()
			}
			d.write(namedAt, uint64(d.reported), uint64(d.firstNamed.UnixNano()))
			d.written = d.reported
		}
		isOld := d.isSurplus || time.Since(d.firstNamed) > keptFor
		if d.file == nil {
			return isOld && !d.isStuck
		}
		if d.written < allNamed || !isOld && d.contents == nil && d.records > 0 {
			return false
		}
		err := os.Remove(p.prefix + d.name)
		d.close()
		if d.isStuck = err != nil && !errors.Is(err, fs.ErrNotExist); d.isStuck {
			p.log.Warn("can't remove a recovery file, so the next daemon will report its crash again", "error", err)
			return false
		}
		removed++
		return isOld || d.contents == nil // otherwise this daemon still answers the clients of the unknown one
	})
	return removed
}

// write writes words of the file. An error is ignored: the next daemon then reports the losses again.
func (d *predecessor) write(at int64, words ...uint64) {
	if d.file != nil && d.contents == nil {
		_, _ = d.file.WriteAt(appendWords(nil, words...), at)
		stored()
	}
}

func (d *predecessor) close() {
	if d.file != nil {
		d.file.Close()
		d.file = nil
	}
}

// release leaves the files to the next daemon.
func (p *predecessors) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.known {
		d.close()
	}
	p.known = nil
}

func (p *predecessors) crashes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.died
}

// earlier returns the outcomes of a connection's spans, in the encoding of wire.Outcomes. name is the
// name of the crashed daemon, and id the ID of the connection's record. earlier returns nil if it
// does not know them. If the file of the daemon is invalid, all spans are in doubt. If the client returns too
// late, its spans are counted as lost, and therefore settled.
func (p *predecessors) earlier(name string, id uint64) (outcomes []uint64, isPending bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.find(name)
	if d == nil && !hasNothing(name) && !strings.ContainsRune(name, filepath.Separator) {
		d, isPending = p.take(name)
	}
	switch {
	case d == nil:
		return nil, isPending
	case d.contents != nil:
		return wire.AppendOutcome(wire.AppendOutcome(nil, 0, wire.Settled), math.MaxInt64, wire.Doubtful), false
	}
	var c contents
	err := c.read(d.file, d.size)
	if err == nil {
		err = c.eachRecord(d.file, func(slot int, r *record) error {
			if r.id != id {
				return nil
			}
			if r.isBack == 0 && d.reported == allNamed {
				outcomes = wire.AppendOutcome(nil, r.received, wire.Settled)
				return io.EOF
			}
			if r.isBack == 0 {
				d.clients.subtract(c.lossOf(r))
				d.write(recordAt(slot)+isBackAt, 1)
			}
			outcomes = c.outcomes(r)
			return io.EOF
		})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		p.log.Warn("can't read a recovery file: the outcome of spans of an earlier connection is unknown", "error", err)
	}
	return outcomes, false
}

// outcomes returns the outcomes of the spans of a record, in the encoding of wire.Outcomes.
func (c *contents) outcomes(r *record) []uint64 {
	end := r.settled
	list := wire.AppendOutcome(nil, end, wire.Settled)
	for m := range r.ranges {
		if m.upTo > end {
			end = m.upTo
			list = wire.AppendOutcome(list, end, outcomeOf[c.combined(m.first, m.last)])
		}
	}
	return list
}

// outcomeOf contains the outcome of spans by the state of their cycle.
var outcomeOf = [...]wire.Outcome{open: wire.Resend, inDoubt: wire.Doubtful, settled: wire.Settled}

// lossOf returns the unsettled spans of a record, for the case that its client does not return.
func (c *contents) lossOf(r *record) (loss Loss) {
	end := r.settled
	for m := range r.ranges {
		if m.upTo > end {
			loss.add(lossIn(c.combined(m.first, m.last), m.upTo-end))
			end = m.upTo
		}
	}
	return loss
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

// losses returns the reported losses.
func (p *predecessors) losses() Losses {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := Losses{Receivers: map[string]Loss{}, Unknown: p.unknown}
	for receiver, loss := range p.total {
		all.Receivers[Receiver(receiver).String()] = loss
	}
	for _, d := range p.known {
		if d.reported < allNamed {
			all.Awaited += d.clients.Lost + d.clients.Ambiguous
		}
	}
	return all
}

func (l *Loss) add(more Loss) { l.Lost, l.Ambiguous = l.Lost+more.Lost, l.Ambiguous+more.Ambiguous }

func (l *Loss) subtract(less Loss) {
	l.Lost, l.Ambiguous = l.Lost-less.Lost, l.Ambiguous-less.Ambiguous
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
