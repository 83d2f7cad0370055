package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/unix"
)

// Config is the configuration of a File.
type Config struct {
	Path        string // path of the socket
	Connections int    // maximum number of connections
	Log         *slog.Logger
	FlushLog    func() // waits until log lines are written; nil if they are written immediately
}

// File is the recovery file of this daemon. All methods can be called on a nil File, which records
// nothing.
type File struct {
	log          *slog.Logger
	file         *os.File
	mapped       []byte // the file in memory, for store; nil if it can't be written
	name         string // identifies the file among those of its socket; begins with the process ID
	path         string
	predecessors predecessors

	isUnwritable atomic.Bool // a write has failed, so the next daemon gets no information
	stopping     atomic.Bool // see SetStopping

	mu            sync.Mutex // guards the rest
	cycles        [maxCycles]cycle
	overwritten   [receivers]uint64
	isRecordInUse []bool // by record
	lastRecordID  uint64 // last assigned ID
}

// Create creates the recovery file of this daemon, from which the next daemon reads how many spans a crash
// has lost. If there are too many files of crashed daemons, it first reports and removes the oldest ones. It
// returns an error if it cannot create the file, but only logs an error of writing to it.
func Create(c Config) (*File, error) {
	filePrefix := prefixOf(c.Path)
	f := &File{log: c.Log, isRecordInUse: make([]bool, c.Connections)}
	f.predecessors = predecessors{
		filePrefix: filePrefix, log: c.Log, flushLog: c.FlushLog, warned: map[string]bool{},
	}
	f.predecessors.removeSurplusFiles()
	file, err := createTemporary(filePrefix)
	if err != nil {
		return nil, err
	}
	f.file = file
	temporaryPath := file.Name()
	f.path = strings.TrimSuffix(temporaryPath, unfinishedSuffix)
	f.name = strings.TrimPrefix(filepath.Base(f.path), filepath.Base(filePrefix))
	f.predecessors.ownName = f.name
	f.writeHeader(c.Connections)
	if err := os.Rename(temporaryPath, f.path); err != nil { // other daemons can read the file from now on
		return nil, deleteTemporary(file, fmt.Errorf("rename recovery file: %w", err))
	}
	return f, nil
}

// createTemporary creates and locks an empty file. Its name is temporary and ends with unfinishedSuffix, so that no
// other daemon reads the file before its header is written.
func createTemporary(filePrefix string) (*os.File, error) {
	directory, namePrefix := filepath.Dir(filePrefix), filepath.Base(filePrefix)
	file, err := os.CreateTemp(directory, fmt.Sprintf("%s%d-*%s", namePrefix, os.Getpid(), unfinishedSuffix))
	if err != nil {
		return nil, fmt.Errorf("create recovery file: %w; check that the directory of --socket is writable", err)
	}
	if err := tryLock(file); err != nil {
		return nil, deleteTemporary(file, fmt.Errorf("lock recovery file: %w", err))
	}
	return file, nil
}

// deleteTemporary deletes and closes an unfinished file because of err. It returns err and the errors of doing so.
func deleteTemporary(file *os.File, err error) error {
	return errors.Join(err, os.Remove(file.Name()), file.Close())
}

// writeHeader allocates the file with records for a number of connections, and writes its header. If
// that fails, it logs the error, and later writes to the file do nothing.
func (f *File) writeHeader(connections int) {
	size := Bytes(connections)
	err := allocate(f.file, size)
	if err == nil {
		err = f.mapFile(size)
	}
	if err != nil {
		truncateErr := f.file.Truncate(0) // other files may need the space
		f.fail(errors.Join(err, truncateErr))
		return
	}
	h := header{magic: magic, records: uint64(connections), startTime: uint64(time.Now().UnixNano())}
	f.write(0, appendWords(nil, h.words()...))
}

// prefixOf returns the common prefix of the recovery files of a socket. It is the same for all
// spellings of the path.
func prefixOf(path string) string { return filepath.Clean(path) + ".running-" }

// unfinishedSuffix is appended to the name of a file that its daemon is still creating.
const unfinishedSuffix = ".new"

// allocate sets the length of a file and allocates its disk space.
func allocate(file *os.File, bytes int) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, int64(bytes))
	if errors.Is(err, unix.EOPNOTSUPP) { // the file system allocates space only for written data
		_, err = file.Write(make([]byte, bytes))
	}
	if err != nil {
		return fmt.Errorf("allocate recovery file: %w", err)
	}
	return nil
}

// tryLock locks a file until its descriptor is closed.
func tryLock(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// write writes encoded words to the file at an offset. If that fails, it logs the error and makes the
// file empty, because outdated contents would mislead the next daemon. It does nothing after Remove has
// closed the file.
func (f *File) write(offset int64, words []byte) {
	if f.isUnwritable.Load() {
		return
	}
	_, err := f.file.WriteAt(words, offset)
	if errors.Is(err, os.ErrClosed) {
		return // Remove has closed the file, because everything was delivered
	}
	if err != nil {
		f.fail(errors.Join(err, f.file.Truncate(0)))
	}
	killPoint() // does nothing, except in a test that kills the daemon here
}

// mapFile maps the file into memory, so that store needs no system call. It opens the file a second
// time, because a mapping of f.file would keep the lock of the file after f.file is closed.
func (f *File) mapFile(size int) error {
	file, err := os.OpenFile(f.file.Name(), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("map recovery file: %w", err)
	}
	defer file.Close()
	f.mapped, err = unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map recovery file: %w", err)
	}
	// Remove can't unmap the memory, because store can still be called afterwards.
	runtime.AddCleanup(f, func(mapped []byte) { _ = unix.Munmap(mapped) }, f.mapped)
	return nil
}

// store writes one word at an offset of the file. It writes to mapped memory instead of calling write,
// because each received batch changes a word. If another process has truncated the file, the memory
// access fails, and store logs an error.
func (f *File) store(offset int64, word uint64) {
	if f.isUnwritable.Load() {
		return
	}
	wasPanicOnFault := debug.SetPanicOnFault(true) // a failed access panics instead of ending the process
	defer debug.SetPanicOnFault(wasPanicOnFault)
	defer f.recoverFault()
	address := (*uint64)(unsafe.Pointer(&f.mapped[offset]))
	atomic.StoreUint64(address, word)
	killPoint() // does nothing, except in a test that kills the daemon here
}

// recoverFault, which store defers, logs a failed access to the mapped memory, and ends all further writes.
func (f *File) recoverFault() {
	fault := recover()
	if fault == nil {
		return
	}
	storeErr := fmt.Errorf("store to recovery file: %v", fault)
	truncateErr := f.file.Truncate(0) // the next daemon must not read a part of the file
	f.fail(errors.Join(storeErr, truncateErr))
}

// fail ends all further writes after a failed one, and logs the error.
func (f *File) fail(err error) {
	if !f.isUnwritable.Swap(true) {
		f.log.Warn("can't write the recovery file: if this daemon crashes, its spans are lost and not reported; "+
			"free space in the directory of --socket", "error", err)
	}
}

// ReportCrashes logs how many spans were lost when earlier daemons crashed. It omits losses that another
// daemon has already logged.
func (f *File) ReportCrashes() { f.predecessors.report() }

// FollowPredecessors logs further losses of earlier daemons until stop is closed. For example, an earlier
// daemon can be killed while it shuts down, or its clients do not reconnect in time.
func (f *File) FollowPredecessors(stop <-chan struct{}) { f.predecessors.follow(stop) }

// Crashes returns the number of crashed daemons that this one has reported.
func (f *File) Crashes() int { return f.predecessors.crashes() }

// Losses returns the spans lost by the crashes that this daemon has reported. The numbers never decrease.
// All are 0 if f is nil, because the daemon has no recovery file.
func (f *File) Losses() Losses {
	if f == nil {
		return (&predecessors{}).losses() // all 0
	}
	return f.predecessors.losses()
}

// OutcomesOf returns which spans of a client's previous connection were delivered, lost or in doubt, in the
// encoding of wire.Outcomes. outcomes is nil if that is unknown, for example because f is nil. isRunning is
// true if the daemon of the connection is still shutting down. token identifies the connection.
func (f *File) OutcomesOf(token string) (outcomes []uint64, isRunning bool) {
	daemon, connection, isValid := parseToken(token)
	if f == nil || !isValid {
		return nil, false
	}
	isThisDaemon := daemon == f.name
	if isThisDaemon {
		// This daemon has received all spans of the connection and still exports them. The outcome Settled tells
		// the client not to resend them.
		return wire.AppendOutcome(nil, allSpans, wire.Settled), false
	}
	return f.predecessors.outcomesOf(daemon, connection)
}

// allSpans is more than the number of any span of a connection.
const allSpans = math.MaxInt64

// parseToken parses the token of a connection, such as "4711-123456789-1f": the name of the daemon, and
// the ID of the connection in hexadecimal. It returns false if the token is invalid.
func parseToken(token string) (daemon string, connection uint64, isValid bool) {
	separator := strings.LastIndexByte(token, '-')
	if separator < 0 {
		return "", 0, false
	}
	connection, err := strconv.ParseUint(token[separator+1:], 16, 64)
	if err != nil || connection == 0 {
		return "", 0, false
	}
	return token[:separator], connection, true
}

// SetStopping records that the daemon is shutting down. From now on, the file keeps the records of
// connections that are closed, because their clients will ask the next daemon about undelivered spans.
func (f *File) SetStopping() { f.stopping.Store(true) }

// Remove deletes and closes the file of this daemon. It must be called only after all spans are
// delivered. It also closes the files of crashed daemons, but does not delete them: the next daemon
// reads them. A file that does not exist is not an error.
func (f *File) Remove() error {
	err := os.Remove(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	f.predecessors.release()
	return errors.Join(err, f.file.Close())
}

// Receiver is the receiver of a span that its client does not keep.
type Receiver int

// The receivers. Spans of a native client belong to Socket after it has disconnected; before, the client
// keeps them.
const (
	Socket Receiver = iota
	APM
	OTLP
	Zipkin
	OTLPValues // not spans, but values of measures in spans received over OTLP

	receivers = int(OTLPValues) + 1
)

var receiverNames = [receivers]string{"socket", "apm", "otlp", "zipkin", "otlp_values"}

// String returns the name of the receiver in metrics.
func (d Receiver) String() string { return receiverNames[d] }

// BeginCycle records that the cycle (an export interval, or a part of one) with the given number begins. It
// must be called before spans are counted in the cycle. The cycle overwrites the oldest one in the file. If
// the oldest one still has undelivered spans, BeginCycle first counts them as overwritten.
func (f *File) BeginCycle(number uint64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	slot := number % maxCycles
	oldest := f.cycles[slot]
	hasUndelivered := stateIn(oldest.stateWord) != stateSettled
	if hasUndelivered {
		// The order matters: a crash between this write and the write below must not lose the counts.
		f.addOverwritten(oldest.spans)
	}
	begun := cycle{stateWord: newStateWord(number, stateOpen)}
	f.cycles[slot] = begun
	f.write(cycleOffset(slot), appendWords(nil, begun.words()...))
}

// addOverwritten adds the spans of a cycle, by receiver, to the number of overwritten spans in the file. These
// are the spans whose cycle was overwritten in the file before they were delivered or given up.
func (f *File) addOverwritten(spans [receivers]uint64) {
	if spans == [receivers]uint64{} {
		return
	}
	for receiver := range spans {
		f.overwritten[receiver] += spans[receiver]
	}
	f.write(overwrittenOffset, appendWords(nil, f.overwritten[:]...))
}

// words returns the words of the cycle in the file.
func (c *cycle) words() []uint64 { return append([]uint64{c.stateWord}, c.spans[:]...) }

// SetInDoubt records whether a destination may have received some spans of the cycle (one export
// interval) with the given number. Calls for one cycle must not be concurrent.
func (f *File) SetInDoubt(number uint64, mayBeReceived bool) {
	if mayBeReceived {
		f.setState(number, stateInDoubt)
	} else {
		f.setState(number, stateOpen)
	}
}

// Settle records that a cycle is settled. Clients must not be notified before.
func (f *File) Settle(number uint64) { f.setState(number, stateSettled) }

// setState records the state of the cycle (an export interval, or a part of one) with the given number.
// It does nothing if a later cycle has overwritten this one in the file.
func (f *File) setState(number uint64, state cycleState) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, slot := f.findCycle(number)
	if c == nil {
		return
	}
	c.stateWord = newStateWord(number, state)
	f.write(cycleOffset(slot), appendWords(nil, c.stateWord))
}

// findCycle returns the cycle with the given number and its slot, or nil if a later cycle has overwritten it.
func (f *File) findCycle(number uint64) (c *cycle, slot uint64) {
	slot = number % maxCycles
	c = &f.cycles[slot]
	if numberIn(c.stateWord) != number {
		return nil, 0
	}
	return c, slot
}

// Count records spans of the given cycle (one export interval) that would be lost if this daemon crashed
// before it exports the cycle, because their sender keeps no copy. For example, a sender deletes the spans
// of an acknowledged request. Count does nothing if a later cycle has overwritten this one in the file.
func (f *File) Count(number uint64, receiver Receiver, spans uint64) {
	if f == nil || spans == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, slot := f.findCycle(number)
	if c == nil {
		return
	}
	c.spans[receiver] += spans
	f.write(spansOffset(slot, int(receiver)), appendWords(nil, c.spans[receiver]))
}
