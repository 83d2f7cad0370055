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
	// A client that reconnects within keepFor can still ask about the outcomes of its spans, unless more
	// than maxKeptFiles daemons have crashed since.
	keepFor      = 10 * time.Minute
	maxKeptFiles = 8

	// maxFilesPerScan is the maximum number of files that a pass over the directory takes.
	maxFilesPerScan = 16

	// reconnectTimeout is how long a daemon waits for the clients of a crashed one to reconnect. Clients try
	// every few seconds. After this time the spans of a client that has not reconnected count as lost.
	reconnectTimeout = time.Minute

	// scanInterval is the time between two passes while there is something to wait for.
	scanInterval = time.Second
)

// stage says which losses of a predecessor have been reported.
type stage uint64

const (
	nothingReported stage = iota
	crashReported         // the crash, and the spans that only the daemon had
	allReported           // spans of clients that have not returned, too
)

// predecessor is a daemon that was killed. This daemon has the lock on its file, so it alone reports the losses.
type predecessor struct {
	name          string
	file          *os.File
	size          int64
	readErr       error // why the contents are unknown; nil if they are known
	began         uint64
	records       int             // number of records in use
	lost          [receivers]Loss // spans that only the daemon had
	clients       Loss            // unsettled spans of clients that have not returned
	awaitUntil    time.Time
	isSurplus     bool      // there are too many files
	isStuck       bool      // the file can't be removed
	reported      stage     // by this daemon or an earlier one
	written       stage     // part of reported that is in the file
	firstReported time.Time // when an earlier daemon reported the crash
}

// predecessors are the daemons of a socket that were killed.
type predecessors struct {
	prefix   string // prefix of all recovery files of the socket
	own      string // name of this daemon's file
	log      *slog.Logger
	flushLog func()

	mu         sync.Mutex // guards the rest, and the files
	crashed    []*predecessor
	warned     map[string]bool // paths that can't be opened
	isLocked   bool            // a file is locked: its daemon may be killed while it shuts down
	total      [receivers]Loss
	crashCount int
	unknown    int
}

// makeRoom removes the files of daemons that were killed, until at most maxKeptFiles are left.
func (p *predecessors) makeRoom() {
	for isMore := true; isMore; {
		isMore = p.lockCrashed()
		p.reportMatching(func(d *predecessor) bool { return d.isSurplus })
		isMore = p.recordReports() > 0 && isMore
	}
}

// report looks for crashed predecessors, and reports them.
func (p *predecessors) report() {
	for isMore := true; isMore; {
		isMore = p.lockCrashed()
		p.reportMatching(func(*predecessor) bool { return true })
		isMore = isMore && p.recordReports() > 0
	}
}

// follow reports the losses of crashed daemons until stop is closed. Then it scans the directory once more.
func (p *predecessors) follow(stop <-chan struct{}) {
	defer p.recordReports()
	for isStopping := false; !isStopping; {
		p.recordReports()
		var again <-chan time.Time
		if p.mustRescan() {
			again = time.After(scanInterval)
		}
		select {
		case <-again:
		case <-stop:
			isStopping = true
		}
		p.report()
	}
}

func (p *predecessors) mustRescan() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isLocked || len(p.crashed) > 0
}

// lockCrashed locks and reads the recovery files of crashed daemons, about maxFilesPerScan per call. It returns
// true if there may be more files.
func (p *predecessors) lockCrashed() (isMore bool) {
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
		entries, err := dir.ReadDir(maxFilesPerScan)
		for _, entry := range entries {
			path := filepath.Join(filepath.Dir(p.prefix), entry.Name())
			name, isOurs := strings.CutPrefix(path, p.prefix)
			if !isOurs || name == p.own || p.findByName(name) != nil || !entry.Type().IsRegular() || removeDisposable(path, entry) {
				continue
			}
			d, isLocked := p.lockFile(name)
			if p.isLocked = p.isLocked || isLocked; d != nil {
				taken++
			}
		}
		if taken >= maxFilesPerScan || err != nil {
			p.markSurplus()
			return taken >= maxFilesPerScan
		}
	}
}

// warnOnce logs an error once per path, because the directory is read repeatedly.
func (p *predecessors) warnOnce(path string, err error) {
	if !p.warned[path] && len(p.warned) < maxFilesPerScan {
		p.warned[path] = true
		p.log.Warn("can't read the recovery file of a previous daemon, so its losses are unknown", "error", err)
	}
}

// isDisposable reports whether a file has nothing to report, by its name: an earlier version had reported it, or
// its daemon was killed while it created it.
func isDisposable(name string) bool {
	return strings.HasSuffix(name, ".read") || strings.HasSuffix(name, unfinished)
}

// removeDisposable reports whether a file has nothing to report. It removes the file, unless its daemon may be about to
// start.
func removeDisposable(path string, entry os.DirEntry) bool {
	if !isDisposable(path) {
		return false
	}
	isNew := strings.HasSuffix(path, unfinished)
	if info, err := entry.Info(); err == nil && (!isNew || time.Since(info.ModTime()) > time.Minute) {
		_ = os.Remove(path) // if it fails, the file stays
	}
	return true
}

func (p *predecessors) findByName(name string) *predecessor {
	for _, d := range p.crashed {
		if d.name == name {
			return d
		}
	}
	return nil
}

// lockFile locks and reads the recovery file of a crashed daemon. It returns nil if the file can't be opened or no
// longer exists. It returns nil with isLocked set if the daemon of the file is still running.
func (p *predecessors) lockFile(name string) (d *predecessor, isLocked bool) {
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
		d = &predecessor{name: name, file: file, readErr: err}
	}
	d.awaitUntil = time.Now().Add(reconnectTimeout)
	p.crashed = append(p.crashed, d)
	return d, false
}

// read reads the file, and sums up its losses.
func (d *predecessor) read() error {
	var c contents
	if err := c.read(d.file, d.size); err != nil {
		return err
	}
	d.began, d.written, d.reported = c.began, stage(c.reported), stage(c.reported)
	if c.reportedAt > 0 {
		d.firstReported = time.Unix(0, int64(c.reportedAt))
	}
	err := c.eachRecord(d.file, func(_ int, r *record) error {
		d.records++
		if r.isReconnected == 0 {
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

// markSurplus marks all but maxKeptFiles files as surplus. It prefers to keep files with connections, then newer
// files.
func (p *predecessors) markSurplus() {
	slices.SortStableFunc(p.crashed, func(a, b *predecessor) int {
		return cmp.Or(-cmp.Compare(min(a.records, 1), min(b.records, 1)), -cmp.Compare(a.began, b.began))
	})
	for i, d := range p.crashed {
		d.isSurplus = i >= maxKeptFiles
	}
}

// reportMatching logs and counts losses that are not reported yet, of the predecessors that match.
func (p *predecessors) reportMatching(matches func(*predecessor) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.crashed {
		if !matches(d) {
			continue
		}
		isFinal := d.clients == Loss{} || d.isSurplus || time.Now().After(d.awaitUntil)
		if d.reported == nothingReported {
			d.reported = crashReported
			p.reportCrash(d, isFinal)
		}
		if d.reported == crashReported && isFinal {
			d.reported = allReported
			p.reportClients(d)
		}
	}
}

// reportCrash reports the crash of a daemon, and the spans that only it had.
func (p *predecessors) reportCrash(d *predecessor, isFinal bool) {
	p.crashCount++
	attributes := []any{"daemons", 1, "names", []string{d.name}}
	if d.readErr != nil {
		p.unknown++
		attributes = append(attributes, "unreadable_files", 1, "error", d.readErr)
	} else if !isFinal {
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

// recordReports writes into each recovery file which of its losses have been reported, so that no later daemon
// reports them again. It first flushes the log. It removes the files that no client can ask about, and returns their number.
func (p *predecessors) recordReports() (removed int) {
	p.mu.Lock()
	isNoted := !slices.ContainsFunc(p.crashed, func(d *predecessor) bool { return d.reported > d.written })
	p.mu.Unlock()
	if !isNoted && p.flushLog != nil {
		p.flushLog()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crashed = slices.DeleteFunc(p.crashed, func(d *predecessor) (isForgotten bool) {
		if d.reported > d.written {
			if d.firstReported.IsZero() {
				d.firstReported = time.Now()
			}
			d.write(reportedOffset, uint64(d.reported), uint64(d.firstReported.UnixNano()))
			d.written = d.reported
		}
		isOld := d.isSurplus || time.Since(d.firstReported) > keepFor
		if d.file == nil {
			return isOld && !d.isStuck
		}
		if d.written < allReported || !isOld && d.readErr == nil && d.records > 0 {
			return false
		}
		err := os.Remove(p.prefix + d.name)
		d.close()
		if d.isStuck = err != nil && !errors.Is(err, fs.ErrNotExist); d.isStuck {
			p.log.Warn("can't remove a recovery file, so the next daemon will report its crash again", "error", err)
			return false
		}
		removed++
		return isOld || d.readErr == nil // otherwise this daemon still answers the clients of the unknown one
	})
	return removed
}

// write writes words of the file. An error is ignored: the next daemon then reports the losses again.
func (d *predecessor) write(at int64, words ...uint64) {
	if d.file != nil && d.readErr == nil {
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
	for _, d := range p.crashed {
		d.close()
	}
	p.crashed = nil
}

func (p *predecessors) crashes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashCount
}

// outcomesOf returns the outcomes of a connection's spans, in the encoding of wire.Outcomes. name is the
// name of the crashed daemon, and id the ID of the connection's record. outcomesOf returns nil if it
// does not know them. If the file of the daemon is invalid, all spans are in doubt. If the client returns too
// late, its spans are counted as lost, and therefore settled.
func (p *predecessors) outcomesOf(name string, id uint64) (outcomes []uint64, isPending bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.findByName(name)
	if d == nil && !isDisposable(name) && !strings.ContainsRune(name, filepath.Separator) {
		d, isPending = p.lockFile(name)
	}
	switch {
	case d == nil:
		return nil, isPending
	case d.readErr != nil:
		return wire.AppendOutcome(wire.AppendOutcome(nil, 0, wire.Settled), math.MaxInt64, wire.Doubtful), false
	}
	var c contents
	err := c.read(d.file, d.size)
	if err == nil {
		err = c.eachRecord(d.file, func(slot int, r *record) error {
			if r.id != id {
				return nil
			}
			if r.isReconnected == 0 && d.reported == allReported {
				outcomes = wire.AppendOutcome(nil, r.received, wire.Settled)
				return io.EOF
			}
			if r.isReconnected == 0 {
				d.clients.subtract(c.lossOf(r))
				d.write(recordOffset(slot)+isReconnectedOffset, 1)
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
	for m := range r.unsettledRanges {
		if m.upTo > end {
			end = m.upTo
			list = wire.AppendOutcome(list, end, outcomeOf[c.commonState(m.first, m.last)])
		}
	}
	return list
}

// outcomeOf contains the outcome of spans by the state of their cycle.
var outcomeOf = [...]wire.Outcome{open: wire.Resend, inDoubt: wire.Doubtful, settled: wire.Settled}

// lossOf returns the unsettled spans of a record, for the case that its client does not return.
func (c *contents) lossOf(r *record) (loss Loss) {
	end := r.settled
	for m := range r.unsettledRanges {
		if m.upTo > end {
			loss.add(lossIn(c.commonState(m.first, m.last), m.upTo-end))
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
	for _, d := range p.crashed {
		if d.reported < allReported {
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
