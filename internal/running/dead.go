package running

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

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
