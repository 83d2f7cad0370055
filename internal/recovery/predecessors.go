package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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

// reportStage says which losses of a crashed daemon have been reported.
type reportStage uint64

const (
	nothingReported reportStage = iota
	crashReported               // the crash, and the spans that only the daemon had
	allReported                 // spans of clients that have not returned, too
)

// predecessor is a daemon that crashed or was killed. The running daemon has the lock on the recovery
// file of the predecessor, so no other daemon reports its losses.
type predecessor struct {
	name            string
	file            *os.File
	size            int64
	readErr         error // why the contents are unknown; nil if they are known
	startTime       uint64
	connections     int             // number of connections in the file
	receiverLosses  [receivers]Loss // spans that no client kept
	clientLoss      Loss            // undelivered spans of clients that have not reconnected
	awaitUntil      time.Time       // time when clients that have not reconnected are given up
	isSurplus       bool            // exceeds maxKeptFiles, so its file is removed early
	isStuck         bool            // the file can't be removed
	reportedStage   reportStage     // losses that this daemon or an earlier one has reported
	stageInFile     reportStage     // value of reportedStage that was last written to the file
	firstReportTime time.Time       // time when an earlier daemon reported the crash
}

// predecessors are the daemons with the same socket path that crashed or were killed.
type predecessors struct {
	filePrefix string // prefix of the paths of all recovery files of the socket
	ownName    string // name of this daemon's file
	log        *slog.Logger
	flushLog   func()

	mu              sync.Mutex // guards the rest, and the files
	crashed         []*predecessor
	warned          map[string]bool // paths that can't be opened
	hasRunning      bool            // another daemon of the socket is running; it can be killed later
	total           [receivers]Loss
	crashCount      int
	unreadableFiles int
}

// removeSurplusFiles removes the files of daemons that were killed, until at most maxKeptFiles are left.
func (p *predecessors) removeSurplusFiles() {
	for {
		hasMore := p.findCrashed()
		p.reportMatching(func(d *predecessor) bool { return d.isSurplus })
		removed := p.recordReports()
		if !hasMore || removed == 0 {
			return
		}
	}
}

// report looks for the recovery files of crashed daemons, and reports their losses.
func (p *predecessors) report() {
	for {
		hasMore := p.findCrashed()
		p.reportMatching(func(*predecessor) bool { return true })
		if !hasMore {
			return
		}
		removed := p.recordReports()
		if removed == 0 {
			return
		}
	}
}

// follow reports the losses of crashed daemons until stop is closed. Then it reports once more.
func (p *predecessors) follow(stop <-chan struct{}) {
	defer p.recordReports()
	for {
		p.recordReports()
		var rescan <-chan time.Time // never ready while it is nil
		if p.mustRescan() {
			rescan = time.After(scanInterval)
		}
		select {
		case <-rescan:
			p.report()
		case <-stop:
			p.report()
			return
		}
	}
}

// mustRescan reports whether there can be more losses to report: if another daemon is running, which
// can be killed, or if clients of a crashed daemon have not reconnected.
func (p *predecessors) mustRescan() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasRunning || len(p.crashed) > 0
}

// findCrashed looks for recovery files of crashed daemons, locks and reads them, and adds the daemons to
// p.crashed. It stops after about maxFilesPerScan added daemons. Then hasMore is true, because the directory can
// contain more of these files.
func (p *predecessors) findCrashed() (hasMore bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dir, err := os.Open(filepath.Dir(p.filePrefix))
	if err != nil {
		p.warnOnce(p.filePrefix, fmt.Errorf("look for recovery files: %w", err))
		return false
	}
	defer dir.Close()
	p.hasRunning = false // until addEntries finds another running daemon
	added := 0
	for added < maxFilesPerScan {
		entries, err := dir.ReadDir(maxFilesPerScan)
		added += p.addEntries(entries)
		if err != nil { // io.EOF after the last entry
			break
		}
	}
	p.markSurplus()
	return added >= maxFilesPerScan
}

// addEntries calls addEntry for each directory entry, and returns the number of daemons that it has added.
func (p *predecessors) addEntries(entries []os.DirEntry) (added int) {
	for _, entry := range entries {
		isAdded := p.addEntry(entry)
		if isAdded {
			added++
		}
	}
	return added
}

// addEntry adds the daemon of a directory entry to p.crashed, if the entry is the recovery file of a crashed
// daemon that is not known yet. It removes a file that has nothing to report. If the daemon is still running,
// it sets p.hasRunning.
func (p *predecessors) addEntry(entry os.DirEntry) (isAdded bool) {
	name, isRecoveryFile := strings.CutPrefix(entry.Name(), filepath.Base(p.filePrefix))
	if !isRecoveryFile || !entry.Type().IsRegular() {
		return false
	}
	isKnown := name == p.ownName || p.findByName(name) != nil
	if isKnown {
		return false
	}
	hasNothingToReport := isDisposable(name)
	if hasNothingToReport {
		removeDisposable(p.filePrefix+name, entry)
		return false
	}
	crashed, isRunning := p.addCrashed(name)
	if isRunning {
		p.hasRunning = true
	}
	return crashed != nil
}

// warnOnce logs an error about a file, unless it has logged an error about this file before. It logs
// errors about at most maxFilesPerScan files.
func (p *predecessors) warnOnce(path string, err error) {
	if !p.warned[path] && len(p.warned) < maxFilesPerScan {
		p.warned[path] = true
		p.log.Warn("can't read the recovery file of a previous daemon, so its losses are unknown", "error", err)
	}
}

// isDisposable reports whether the name of a file shows that it contains no unreported losses. Either an earlier
// version of the daemon has reported them, or the file's daemon was killed while it created the file.
func isDisposable(name string) bool {
	return strings.HasSuffix(name, ".read") || strings.HasSuffix(name, unfinishedSuffix)
}

// removeDisposable deletes a file for which isDisposable is true. It does not delete an unfinished file that
// was changed in the last minute, because a daemon can still be creating it.
func removeDisposable(path string, entry os.DirEntry) {
	info, err := entry.Info()
	if err != nil {
		return
	}
	isUnfinished := strings.HasSuffix(path, unfinishedSuffix)
	isRecent := time.Since(info.ModTime()) <= time.Minute
	if isUnfinished && isRecent {
		return
	}
	_ = os.Remove(path) // if it fails, the file stays
}

// findByName returns the crashed daemon with the given name, or nil if it is not known.
func (p *predecessors) findByName(name string) *predecessor {
	for _, d := range p.crashed {
		if d.name == name {
			return d
		}
	}
	return nil
}

// addCrashed locks and reads the recovery file of the daemon with the given name, and adds the daemon to p.crashed.
// It returns nil if the file does not exist or cannot be opened. It also returns nil if the daemon is still
// running, which isRunning reports.
func (p *predecessors) addCrashed(name string) (d *predecessor, isRunning bool) {
	path := p.filePrefix + name
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.warnOnce(path, fmt.Errorf("open recovery file: %w; remove %s if no daemon runs", err, path))
		}
		return nil, false
	}
	file := os.NewFile(uintptr(fd), path)
	info, err := file.Stat()
	isRegular := err == nil && info.Mode().IsRegular()
	if !isRegular {
		file.Close()
		return nil, false
	}
	lockErr := tryLock(file)
	isRunning = lockErr != nil // a running daemon has the lock
	_, statErr := os.Lstat(path)
	isRemoved := statErr != nil // its daemon has shut down since the file was opened above
	if isRunning || isRemoved {
		file.Close()
		return nil, isRunning
	}
	d = &predecessor{name: name, file: file, size: info.Size()}
	if err := d.read(); err != nil {
		d = &predecessor{name: name, file: file, readErr: err} // without the numbers read before the error
	}
	d.awaitUntil = time.Now().Add(reconnectTimeout)
	p.crashed = append(p.crashed, d)
	return d, false
}

// read reads the recovery file of a crashed daemon, and computes how many spans were lost in the crash.
// d.receiverLosses counts the spans of which no client has a copy. d.clientLoss counts the spans that are lost unless a
// client reconnects and resends them.
func (d *predecessor) read() error {
	var c contents
	if err := c.read(d.file, d.size); err != nil {
		return err
	}
	d.startTime = c.startTime
	d.reportedStage = reportStage(c.reportedStage) // losses that other daemons have reported
	d.stageInFile = d.reportedStage
	if c.reportedAt > 0 {
		d.firstReportTime = time.Unix(0, int64(c.reportedAt))
	}
	for receiver := range d.receiverLosses {
		d.receiverLosses[receiver] = c.receiverLoss(receiver)
	}
	return c.eachRecord(d.file, func(_ int, connection *record) error {
		d.connections++
		if !connection.hasClientReturned() {
			d.clientLoss.add(c.connectionLoss(connection))
		}
		return nil
	})
}

// receiverLoss returns the lost spans of a receiver that only the crashed daemon had.
func (c *contents) receiverLoss(receiver int) Loss {
	loss := Loss{Lost: c.overwritten[receiver]}
	for i := range c.cycles {
		loss.add(lossIn(stateIn(c.cycles[i].stateWord), c.cycles[i].spans[receiver]))
	}
	return loss
}

// markSurplus determines the crashed daemons whose files are kept, at most maxKeptFiles, and sets
// isSurplus for the others. Daemons with connections precede others, because clients can ask about them.
// Newer daemons precede older ones.
func (p *predecessors) markSurplus() {
	slices.SortStableFunc(p.crashed, func(a, b *predecessor) int {
		switch {
		case a.connections > 0 && b.connections == 0:
			return -1
		case a.connections == 0 && b.connections > 0:
			return 1
		}
		return cmp.Compare(b.startTime, a.startTime)
	})
	for i, d := range p.crashed {
		d.isSurplus = i >= maxKeptFiles
	}
}

// reportMatching calls reportLosses for each crashed daemon for which matches returns true.
func (p *predecessors) reportMatching(matches func(*predecessor) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.crashed {
		if matches(d) {
			p.reportLosses(d)
		}
	}
}

// reportLosses logs and counts the losses of a crashed daemon in two stages. First it reports the crash and the
// spans that only this daemon had. When no client can resend spans any more, it reports the spans of the clients that
// have not reconnected. It skips a stage that was reported before.
func (p *predecessors) reportLosses(d *predecessor) {
	awaitsClients := d.awaitsClients()
	if d.reportedStage < crashReported {
		d.reportedStage = crashReported
		p.reportCrash(d, awaitsClients)
	}
	if d.reportedStage < allReported && !awaitsClients {
		d.reportedStage = allReported
		p.reportClients(d)
	}
}

// awaitsClients reports whether clients of the crashed daemon can still reconnect and resend spans.
func (d *predecessor) awaitsClients() bool {
	hasClients := d.clientLoss != Loss{}
	hasTimedOut := time.Now().After(d.awaitUntil)
	return hasClients && !d.isSurplus && !hasTimedOut
}

// reportCrash logs and counts the crash of a daemon, and the lost spans of which no client has a copy. If
// awaitsClients is true, it also logs the number of spans that clients can still resend.
func (p *predecessors) reportCrash(d *predecessor, awaitsClients bool) {
	p.crashCount++
	if d.readErr != nil {
		p.unreadableFiles++
	}
	for receiver, loss := range d.receiverLosses {
		p.total[receiver].add(loss)
	}
	p.logCrash(d, awaitsClients)
}

// logCrash writes the log line of reportCrash.
func (p *predecessors) logCrash(d *predecessor, awaitsClients bool) {
	attributes := []any{"daemons", 1, "names", []string{d.name}}
	if d.readErr != nil {
		attributes = append(attributes, "unreadable_files", 1, "error", d.readErr)
	} else if awaitsClients {
		mayBeResent := d.clientLoss.Lost + d.clientLoss.Ambiguous
		attributes = append(attributes, "awaiting_replay", mayBeResent)
	}
	for receiver, loss := range d.receiverLosses {
		attributes = appendLoss(attributes, Receiver(receiver), loss)
	}
	p.log.Warn("the previous daemon crashed or was killed: clients resend the spans that they keep, others "+
		"are lost; look for an out-of-memory kill, or a shutdown that exceeded the grace period", attributes...)
}

// reportClients logs the unsettled spans of clients that have not reconnected, if there are any.
func (p *predecessors) reportClients(d *predecessor) {
	if d.clientLoss == (Loss{}) {
		return
	}
	p.total[Socket].add(d.clientLoss)
	p.log.Warn("clients of a crashed daemon have not reconnected: the spans that they kept are lost",
		appendLoss([]any{"names", []string{d.name}}, Socket, d.clientLoss)...)
}

func appendLoss(attributes []any, receiver Receiver, loss Loss) []any {
	if loss == (Loss{}) {
		return attributes
	}
	return append(attributes, receiver.String()+"_lost", loss.Lost, receiver.String()+"_ambiguous", loss.Ambiguous)
}

// recordReports records in the recovery files which losses have been reported, so that no later daemon
// reports them again. It deletes a file when all its losses are reported and no client can ask about its spans
// any more. It returns the number of deleted files.
func (p *predecessors) recordReports() (removed int) {
	if p.flushLog != nil && p.hasNewReports() {
		p.flushLog() // a report that is recorded must not get lost with the log
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.crashed {
		d.recordReport()
	}
	removed = p.removeUnneededFiles()
	p.crashed = slices.DeleteFunc(p.crashed, (*predecessor).canBeForgotten)
	return removed
}

// removeUnneededFiles deletes the recovery files for which isFileNeeded is false, and returns their number.
func (p *predecessors) removeUnneededFiles() (removed int) {
	for _, d := range p.crashed {
		if d.file == nil || d.isFileNeeded() {
			continue
		}
		isRemoved := p.removeFile(d)
		if isRemoved {
			removed++
		}
	}
	return removed
}

// isFileNeeded reports whether some losses of the daemon are not reported yet, or whether its clients can
// still ask for the outcomes of their spans.
func (d *predecessor) isFileNeeded() bool {
	hasUnreported := d.reportedStage < allReported
	if hasUnreported {
		return true
	}
	hasClients := d.readErr == nil && d.connections > 0
	return hasClients && !d.isExpired()
}

// canBeForgotten reports whether the file of the daemon is deleted, and no client needs an answer. If the file was
// unreadable, clients get the answer that all of their spans are in doubt, until isExpired.
func (d *predecessor) canBeForgotten() bool {
	isDeleted := d.file == nil && !d.isStuck
	needsAnswers := d.readErr != nil && !d.isExpired()
	return isDeleted && !needsAnswers
}

// isExpired reports whether it is too late for clients to ask for the outcomes of their spans.
func (d *predecessor) isExpired() bool {
	return d.isSurplus || time.Since(d.firstReportTime) > keepFor
}

// hasNewReports reports whether losses were reported that are not recorded in a recovery file yet.
func (p *predecessors) hasNewReports() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.crashed, func(d *predecessor) bool { return d.reportedStage > d.stageInFile })
}

// recordReport writes into the recovery file which losses have been reported, if that has changed.
func (d *predecessor) recordReport() {
	if d.reportedStage == d.stageInFile {
		return
	}
	if d.firstReportTime.IsZero() {
		d.firstReportTime = time.Now()
	}
	d.write(reportedOffset, uint64(d.reportedStage), uint64(d.firstReportTime.UnixNano()))
	d.stageInFile = d.reportedStage
}

// removeFile deletes and closes the recovery file of a crashed daemon. If it cannot delete the file, it
// logs an error, sets d.isStuck, and returns false.
func (p *predecessors) removeFile(d *predecessor) bool {
	err := os.Remove(p.filePrefix + d.name)
	d.close()
	d.isStuck = err != nil && !errors.Is(err, fs.ErrNotExist)
	if d.isStuck {
		p.log.Warn("can't remove a recovery file, so the next daemon will report its crash again", "error", err)
	}
	return !d.isStuck
}

// write writes words into the recovery file at an offset. It ignores errors: the next daemon then reports
// the losses again.
func (d *predecessor) write(offset int64, words ...uint64) {
	if d.file != nil && d.readErr == nil {
		_, _ = d.file.WriteAt(appendWords(nil, words...), offset)
		killPoint()
	}
}

func (d *predecessor) close() {
	if d.file != nil {
		d.file.Close()
		d.file = nil
	}
}

// release closes the files of crashed daemons without removing them, so that the next daemon reads them.
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

// outcomesOf returns the outcomes of the spans that a client sent to an earlier daemon over a connection, in the
// encoding of wire.Outcomes. If the daemon's recovery file is damaged, all spans are in doubt. outcomes is nil if
// there is no file, or if the file does not contain the connection. isRunning reports whether the earlier daemon is
// still running; outcomes is nil then.
func (p *predecessors) outcomesOf(daemon string, connection uint64) (outcomes []uint64, isRunning bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	crashed := p.findByName(daemon)
	isKnown := crashed != nil
	if !isKnown && isFileName(daemon) {
		crashed, isRunning = p.addCrashed(daemon)
	}
	if isRunning {
		return nil, true
	}
	hasNoFile := crashed == nil
	if hasNoFile {
		return nil, false
	}
	if crashed.readErr != nil {
		return allInDoubt(), false
	}
	outcomes, err := crashed.answerClient(connection)
	if err != nil {
		p.log.Warn("can't read a recovery file: the outcome of spans of an earlier connection is unknown", "error", err)
	}
	return outcomes, false
}

// allInDoubt returns outcomes, in the encoding of wire.Outcomes, by which all spans of a connection are in doubt.
func allInDoubt() []uint64 {
	noneSettled := wire.AppendOutcome(nil, 0, wire.Settled)
	return wire.AppendOutcome(noneSettled, allSpans, wire.Ambiguous)
}

// isFileName reports whether a name from a client can be that of a recovery file in the directory.
func isFileName(name string) bool {
	return !isDisposable(name) && !strings.ContainsRune(name, filepath.Separator)
}

// answerClient returns the outcomes of the spans that a client sent to the crashed daemon over a connection, in the
// encoding of wire.Outcomes. It returns nil if the file has no such connection.
func (d *predecessor) answerClient(connection uint64) (outcomes []uint64, err error) {
	var c contents
	if err := c.read(d.file, d.size); err != nil {
		return nil, err
	}
	slot, found, err := c.findRecord(d.file, connection)
	if err != nil || found == nil {
		return nil, err
	}
	if found.hasClientReturned() { // an earlier answer has subtracted its spans from d.clientLoss
		return c.outcomes(found), nil
	}
	areReportedLost := d.reportedStage == allReported
	if areReportedLost { // the client must not resend them, because they would be counted twice
		allSettled := wire.AppendOutcome(nil, found.received, wire.Settled)
		return allSettled, nil
	}
	// The client will resend the undelivered spans, so they are not lost.
	d.clientLoss.subtract(c.connectionLoss(found))
	const outcomesSent = 1
	d.write(recordOffset(slot)+outcomesSentOffset, outcomesSent)
	return c.outcomes(found), nil
}

// outcomes returns the outcomes of the spans of a connection, in the encoding of wire.Outcomes.
func (c *contents) outcomes(connection *record) []uint64 {
	outcomes := wire.AppendOutcome(nil, connection.settled, wire.Settled)
	for _, group := range c.unsettledGroups(connection) {
		outcomes = wire.AppendOutcome(outcomes, group.lastSpan, outcomeOf[group.state])
	}
	return outcomes
}

// outcomeOf contains the outcome of spans by the state of their cycle.
var outcomeOf = [...]wire.Outcome{stateOpen: wire.Resend, stateInDoubt: wire.Ambiguous, stateSettled: wire.Settled}

// connectionLoss returns how many spans of a connection are lost if the client does not reconnect and resend
// them. Settled spans, which were delivered or given up, are not included.
func (c *contents) connectionLoss(connection *record) (loss Loss) {
	for _, group := range c.unsettledGroups(connection) {
		loss.add(lossIn(group.state, group.spans))
	}
	return loss
}

// spanGroup is a group of successive spans of a connection. The spans of a connection are numbered from 1.
type spanGroup struct {
	spans    uint64     // number of spans in the group
	lastSpan uint64     // number of the last span of the group
	state    cycleState // common state of the cycles that contain the spans
}

// unsettledGroups returns the spans of a connection that were neither delivered nor given up when its record
// was written. Each group contains the spans of one cycle (export interval). If the record had no room for all
// cycles, one group contains the spans of several cycles. The oldest group is the first.
func (c *contents) unsettledGroups(connection *record) (groups []spanGroup) {
	previousSpan := connection.settled // number of the last span before the group; groups contain no settled span
	for _, r := range connection.allRanges() {
		hasUnsettled := r.lastSpan > previousSpan
		if !hasUnsettled {
			continue
		}
		groups = append(groups, spanGroup{
			spans:    r.lastSpan - previousSpan,
			lastSpan: r.lastSpan,
			state:    c.commonState(r.firstCycle, r.lastCycle),
		})
		previousSpan = r.lastSpan
	}
	return groups
}

// Losses counts the spans lost by crashes.
type Losses struct {
	// Unknown is the number of daemons whose losses are unknown, because their files are damaged or of
	// another version.
	Unknown   int             `json:"unreadable_files"`
	Receivers map[string]Loss `json:"receivers"`
	Values    Loss            `json:"values"`          // values of measures in lost spans
	Awaited   uint64          `json:"awaiting_replay"` // undelivered spans that clients may resend
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

// losses returns the spans that were reported as lost in crashes, by receiver. Losses.Awaited is the
// number of spans that clients may still resend, so that they are not reported as lost yet.
func (p *predecessors) losses() Losses {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := Losses{Receivers: map[string]Loss{}, Unknown: p.unreadableFiles}
	for i, loss := range p.total {
		receiver := Receiver(i)
		if receiver == OTLPValues { // counts values of measures instead of spans
			all.Values = loss
			continue
		}
		all.Receivers[receiver.String()] = loss
	}
	for _, crashed := range p.crashed {
		isFullyReported := crashed.reportedStage == allReported
		if !isFullyReported {
			all.Awaited += crashed.clientLoss.Lost + crashed.clientLoss.Ambiguous
		}
	}
	return all
}

func (l *Loss) add(other Loss) {
	l.Lost += other.Lost
	l.Ambiguous += other.Ambiguous
}

func (l *Loss) subtract(other Loss) {
	l.Lost -= other.Lost
	l.Ambiguous -= other.Ambiguous
}

// lossIn returns the loss of spans in cycles with the given state.
func lossIn(s cycleState, spans uint64) Loss {
	switch s {
	case stateSettled:
		return Loss{}
	case stateOpen:
		return Loss{Lost: spans}
	}
	return Loss{Ambiguous: spans}
}
