package running

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// File is the running file of this daemon. A nil one is of nobody: what is noted in it is lost.
type File struct {
	file   *os.File
	mapped []byte // nil where it can't be
	layout *layout

	mu      sync.Mutex // guards the next two
	records []record
	ids     uint64 // that were given

	stopping atomic.Bool // see Stopping

	before predecessors
}

// Make makes the file of this daemon, of a socket's path, with room for so many connections. Where
// it can't be mapped the file is there all the same, and unmapped says why.
func Make(path string, connections int) (f *File, unmapped, err error) {
	prefix := runningPrefix(path)
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(prefix)+"*")
	if err != nil {
		return nil, nil, fmt.Errorf("make running file: %w; check that the directory of --socket may be "+
			"written", err)
	}
	if err := tryLock(file); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("lock running file: %w", err), os.Remove(file.Name()),
			file.Close())
	}
	f = &File{file: file, before: predecessors{prefix: prefix}}
	f.mapped, unmapped = mapFile(file, Bytes(connections))
	memory := f.mapped
	if unmapped != nil {
		memory = make([]byte, Bytes(connections))
	}
	f.layout, f.records = over(memory, connections)
	f.layout.records.Store(uint64(connections))
	f.layout.magic.Store(magic) // last: until then it says nothing
	return f, unmapped, nil
}

// runningPrefix is how the names of all running files of a socket begin, however its path is written.
func runningPrefix(path string) string { return filepath.Clean(path) + ".running-" }

// name tells this file from all others of its socket.
func (f *File) name() string { return strings.TrimPrefix(f.file.Name(), f.before.prefix) }

// FindDead reads what daemons have left that were killed at this file's socket, and returns the names
// of those that nobody has said before. One that can't be looked at, such as another user's, is left,
// and is no reason not to run: the error says of which nobody knows how its daemon ended.
func (f *File) FindDead() (died []string, err error) { return f.before.find() }

// Said notes that it was said who died, and what with it: no later daemon says it again. A daemon that
// is killed before leaves that to the next.
func (f *File) Said() error { return f.before.said() }

// Earlier says what became of the spans of the connection that has a token, as wire.Outcomes reads
// it; nil where nobody knows. Whoever asks again is told the same.
func (f *File) Earlier(token string) []uint64 {
	name, text, _ := strings.Cut(token, "-")
	id, err := strconv.ParseUint(text, 16, 64)
	switch {
	case f == nil || err != nil || id == 0:
		return nil
	case f.mapped != nil && name == f.name():
		// It lives, and has them all in its books.
		return wire.AppendOutcome(nil, math.MaxInt64, wire.Settled)
	}
	return f.before.earlier(name, id)
}

// Losses is what daemons have taken with them that nobody had said before this one. It never falls.
func (f *File) Losses() Losses {
	if f == nil {
		return new(predecessors).losses()
	}
	return f.before.losses()
}

// Stopping says that connections are now ended by this daemon: their clients keep what they handed over, and
// ask the next one, should this one be killed before its books are delivered. So what stands of them
// stays.
func (f *File) Stopping() { f.stopping.Store(true) }

// Done says that the books were delivered. Where the file is gone, with its directory
// perhaps, no daemon can take this one for one that died. The memory stays mapped: who is asked for
// figures behind the end reads them there.
func (f *File) Done() error {
	removed := os.Remove(f.file.Name())
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}
	return errors.Join(removed, f.file.Close())
}
