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
	predecessors predecessors

	isUnwritable atomic.Bool // a write has failed, so the next daemon gets no information
	stopping     atomic.Bool // see SetStopping

	mu     sync.Mutex // guards the rest
	cycles [maxCycles]cycle
	older  [receivers]uint64
	inUse  []bool // by record
	ids    uint64 // last assigned ID
}

// Create creates the recovery file of a daemon. It first makes room: if too many daemons were killed before, it
// reports and removes the oldest files. A file that can't be written is not an error, but is logged.
func Create(c Config) (*File, error) {
	f := &File{log: c.Log, inUse: make([]bool, c.Connections)}
	f.predecessors = predecessors{
		prefix: prefixOf(c.Path), log: c.Log, flushLog: c.FlushLog, warned: map[string]bool{},
	}
	f.predecessors.makeRoom()
	dir, prefix := filepath.Dir(f.predecessors.prefix), filepath.Base(f.predecessors.prefix)
	file, err := os.CreateTemp(dir, fmt.Sprintf("%s%d-*%s", prefix, os.Getpid(), unfinished))
	if err != nil {
		return nil, fmt.Errorf("create recovery file: %w; check that the directory of --socket is writable", err)
	}
	f.file = file
	f.name = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file.Name()), prefix), unfinished)
	if err := tryLock(file); err != nil {
		return nil, errors.Join(fmt.Errorf("lock recovery file: %w", err), os.Remove(file.Name()), file.Close())
	}
	if err := errors.Join(allocate(file, Bytes(c.Connections)), f.mapFile(Bytes(c.Connections))); err != nil {
		f.fail(errors.Join(err, file.Truncate(0))) // other files may need the space
	}
	h := header{magic: magic, records: uint64(c.Connections), began: uint64(time.Now().UnixNano())}
	f.write(0, appendWords(nil, h.words()...))
	// The name is final only now, so that no other daemon takes an empty file for that of a killed one.
	if err := os.Rename(file.Name(), f.predecessors.prefix+f.name); err != nil {
		return nil, errors.Join(fmt.Errorf("rename recovery file: %w", err), os.Remove(file.Name()), file.Close())
	}
	f.predecessors.own = f.name
	return f, nil
}

// prefixOf returns the common prefix of the recovery files of a socket. It is the same for all
// spellings of the path.
func prefixOf(path string) string { return filepath.Clean(path) + ".running-" }

// unfinished is appended to the name of a file that its daemon is still creating.
const unfinished = ".new"

// allocate sets the length of a file and allocates its disk space.
func allocate(file *os.File, bytes int) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, int64(bytes))
	if errors.Is(err, unix.EOPNOTSUPP) {
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

// write writes a part of the file. The first failure is logged and makes the file empty, since its contents
// would mislead the next daemon.
func (f *File) write(at int64, part []byte) {
	if f.isUnwritable.Load() {
		return
	}
	_, err := f.file.WriteAt(part, at)
	if errors.Is(err, os.ErrClosed) {
		return // everything was delivered, see Remove
	}
	if err != nil {
		f.fail(errors.Join(err, f.file.Truncate(0)))
	}
	stored()
}

// mapFile maps the file into memory. It opens the file once more, because mapped memory would keep the lock of
// f.file after it is closed. The memory is released with the File: trackers can store after Remove.
func (f *File) mapFile(bytes int) error {
	file, err := os.OpenFile(f.file.Name(), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("map recovery file: %w", err)
	}
	defer file.Close()
	f.mapped, err = unix.Mmap(int(file.Fd()), 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map recovery file: %w", err)
	}
	runtime.AddCleanup(f, func(mapped []byte) { _ = unix.Munmap(mapped) }, f.mapped)
	return nil
}

// store writes one word of the file like write, but without a system call, which would add 20 % to the cost of
// a span: one word changes with each batch. If another process has truncated the file, the memory faults. That
// counts as a failed write.
func (f *File) store(at int64, word uint64) {
	if f.isUnwritable.Load() {
		return
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			f.fail(errors.Join(fmt.Errorf("store to recovery file: %v", fault), f.file.Truncate(0)))
		}
	}()
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&f.mapped[at])), word)
	stored()
}

func (f *File) fail(err error) {
	if !f.isUnwritable.Swap(true) {
		f.log.Warn("can't write the recovery file: if this daemon crashes, its spans are lost and not reported; "+
			"free space in the directory of --socket", "error", err)
	}
}

// ReportCrashes logs and counts the daemons that were killed before this one, unless an earlier daemon has
// reported them.
func (f *File) ReportCrashes() { f.predecessors.report() }

// FollowPredecessors runs until stop is closed. It records in the files of predecessors that their losses were
// reported, and reports further ones: daemons that are killed while they shut down next to this one, and
// clients that do not return.
func (f *File) FollowPredecessors(stop <-chan struct{}) { f.predecessors.follow(stop) }

// Crashes returns the number of crashed daemons that this one has reported.
func (f *File) Crashes() int { return f.predecessors.crashes() }

// Losses returns the spans lost by the crashes that this daemon has reported. The numbers never decrease.
func (f *File) Losses() Losses {
	if f == nil {
		return new(predecessors).losses()
	}
	return f.predecessors.losses()
}

// Earlier returns the outcomes of the spans of a connection to an earlier daemon, given the
// connection's token, in the encoding of wire.Outcomes. It returns nil if they are unknown. It can
// be called repeatedly. If isPending, that daemon is still shutting down, and the outcomes are not known yet.
func (f *File) Earlier(token string) (outcomes []uint64, isPending bool) {
	at := strings.LastIndexByte(token, '-')
	if f == nil || at < 0 {
		return nil, false
	}
	name := token[:at]
	id, err := strconv.ParseUint(token[at+1:], 16, 64)
	switch {
	case err != nil || id == 0:
		return nil, false
	case name == f.name:
		// The connection was to this daemon, which has counted all its spans.
		return wire.AppendOutcome(nil, math.MaxInt64, wire.Settled), false
	}
	return f.predecessors.outcomesOf(name, id)
}

// SetStopping records that the daemon is shutting down and will close connections itself. Their
// records stay, because the clients keep their unsettled spans and ask the next daemon about them,
// should this one be killed before it has delivered everything.
func (f *File) SetStopping() { f.stopping.Store(true) }

// Remove removes the file after everything was delivered, and leaves the files of predecessors to the next
// daemon. It is not an error if the file is gone already.
func (f *File) Remove() error {
	removed := os.Remove(f.predecessors.prefix + f.name)
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}
	f.predecessors.release()
	return errors.Join(removed, f.file.Close())
}

// Receiver is the receiver of a span whose client no longer has it.
type Receiver int

// The receivers. Spans of a native client belong to Socket after it has disconnected; before, the client
// keeps them.
const (
	Socket Receiver = iota
	APM
	OTLP
	Zipkin

	receivers = int(Zipkin) + 1
)

var receiverNames = [receivers]string{"socket", "apm", "otlp", "zipkin"}

// String returns the name of the receiver in metrics.
func (d Receiver) String() string { return receiverNames[d] }

// Begin assigns a slot of the file to a new cycle, before any publisher enters the cycle. It first adds the
// counts of an unsettled older cycle in that slot to older. After a crash in between, they are in both places.
func (f *File) Begin(number uint64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &f.cycles[number%maxCycles]
	if isOldUnsettled := stateIn(c.state) != settled; isOldUnsettled && c.spans != [receivers]uint64{} {
		for receiver, spans := range c.spans {
			f.older[receiver] += spans
		}
		f.write(olderOffset, appendWords(nil, f.older[:]...))
	}
	*c = cycle{state: packState(number, open)}
	f.write(cycleOffset(number%maxCycles), appendWords(nil, append([]uint64{c.state}, c.spans[:]...)...))
}

// SetInDoubt records whether a destination may have some spans of the cycle with the given number.
// Calls for one cycle must not be concurrent.
func (f *File) SetInDoubt(number uint64, isInDoubt bool) {
	if isInDoubt {
		f.setState(number, inDoubt)
	} else {
		f.setState(number, open)
	}
}

// Settle records that a cycle is settled. Clients must not be notified before.
func (f *File) Settle(number uint64) { f.setState(number, settled) }

// setState sets the state of a cycle, unless a later cycle has reused its slot.
func (f *File) setState(number uint64, to cycleState) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := &f.cycles[number%maxCycles]; numberIn(c.state) == number {
		c.state = packState(number, to)
		f.write(cycleOffset(number%maxCycles), appendWords(nil, c.state))
	}
}

// Count adds to the number of spans of a cycle that only this daemon has, because their client no
// longer keeps them: for example, the spans of a request that is about to be acknowledged. It does
// nothing if a later cycle has reused the slot.
func (f *File) Count(number uint64, receiver Receiver, spans uint64) {
	if f == nil || spans == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := &f.cycles[number%maxCycles]; numberIn(c.state) == number {
		c.spans[receiver] += spans
		f.write(cycleOffset(number%maxCycles)+int64(1+receiver)*wordBytes, appendWords(nil, c.spans[receiver]))
	}
}
