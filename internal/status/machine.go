package status

import (
	queue "container/list"
	"context"
	"crypto/tls"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Machine is the current state of the machine's resources for the process. Unknown values are 0.
type Machine struct {
	Processors       int     `json:"processors"` // GOMAXPROCS
	CPULimit         float64 `json:"cpu_limit"`  // processors permitted by control groups; 0: no limit
	ThrottledSeconds float64 `json:"cpu_throttled_seconds"`
	OpenFiles        int     `json:"open_files"`
	MaxFiles         uint64  `json:"max_files"`
	ResidentBytes    int64   `json:"resident_bytes"`
}

// readMachine reads the state from the file system.
func readMachine(root fs.FS) Machine {
	m := Machine{Processors: runtime.GOMAXPROCS(0), CPULimit: math.Inf(1)}
	for group, version := range memory.Groups(root, "cpu") {
		if limit := processors(root, group, version); limit > 0 {
			m.CPULimit = min(m.CPULimit, limit)
		}
		m.ThrottledSeconds = max(m.ThrottledSeconds, throttled(root, group))
	}
	if math.IsInf(m.CPULimit, 1) {
		m.CPULimit = 0
	}
	open, _ := fs.ReadDir(root, "proc/self/fd")
	m.OpenFiles = len(open)
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		m.MaxFiles = limit.Cur
	}
	if pages := numbers(root, "proc/self/statm"); len(pages) > 1 {
		m.ResidentBytes = int64(pages[1]) * int64(os.Getpagesize())
	}
	return m
}

// processors returns the number of processors permitted by a control group, or 0 if there is no
// limit.
func processors(root fs.FS, group string, version int) float64 {
	quota := numbers(root, path.Join(group, "cpu.max"))
	if version == 1 {
		quota = append(numbers(root, path.Join(group, "cpu.cfs_quota_us")),
			numbers(root, path.Join(group, "cpu.cfs_period_us"))...)
	}
	if len(quota) != 2 || quota[0] <= 0 || quota[1] <= 0 {
		return 0
	}
	return quota[0] / quota[1]
}

// throttled returns how long a control group was throttled, in seconds. Version 1 reports
// nanoseconds.
func throttled(root fs.FS, group string) float64 {
	text, _ := fs.ReadFile(root, path.Join(group, "cpu.stat"))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "throttled_usec":
			return n / 1e6
		case "throttled_time":
			return n / 1e9
		}
	}
	return 0
}

// numbers returns the numbers at the start of a file.
func numbers(root fs.FS, name string) (all []float64) {
	text, _ := fs.ReadFile(root, name)
	for _, field := range strings.Fields(string(text)) {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return all
		}
		all = append(all, n)
	}
	return all
}

// MaxConnections bounds connections: probes, scrapes and people are a handful.
// Each costs some tens of KiB, and nothing else bounds how many a process beside us
// opens.
const MaxConnections = 256

// connLimiter closes a connection of a server when there are more than a maximum: the one that has waited
// longest for a request header, so that half-sent requests never shut out a probe; or the oldest, if every connection
// is waiting for a response. (netutil.LimitListener would stop accepting instead.) It is
// safe for concurrent use.
type connLimiter struct {
	max int

	mu      sync.Mutex
	order   queue.List // of *connection, by the time at which the wait for a header began
	of      map[net.Conn]*queue.Element
	evicted uint64
}

func newConnLimiter(limit int) *connLimiter {
	return &connLimiter{max: limit, of: map[net.Conn]*queue.Element{}}
}

type connection struct {
	net.Conn
	answering int // requests being served; several in HTTP/2
}

// connectionKey is where a request's context has its connection.
type connectionKey struct{}

// attach makes a server report its connections and requests.
func (c *connLimiter) attach(server *http.Server) {
	server.ConnState = c.follow
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
}

// follow is called with each state of each connection.
func (c *connLimiter) follow(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if len(c.of) >= c.max {
			c.evict()
		}
		c.of[conn] = c.order.PushBack(&connection{Conn: conn})
	case http.StateClosed, http.StateHijacked:
		if at, open := c.of[conn]; open {
			c.forget(at)
		}
	}
}

// evict closes a connection.
func (c *connLimiter) evict() {
	chosen := c.order.Front()
	for at := chosen; at != nil; at = at.Next() {
		if at.Value.(*connection).answering == 0 {
			chosen = at
			break
		}
	}
	conn := chosen.Value.(*connection).Conn
	c.forget(chosen)
	c.evicted++
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // without a close_notify, which might block
	}
	conn.Close()
}

func (c *connLimiter) forget(at *queue.Element) {
	delete(c.of, at.Value.(*connection).Conn)
	c.order.Remove(at)
}

// evictions returns how many connections were closed.
func (c *connLimiter) evictions() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evicted
}

// watch marks connections while their requests are served.
func (c *connLimiter) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connectionKey{}).(net.Conn)
		c.answering(conn, 1)
		defer c.answering(conn, -1)
		next.ServeHTTP(w, r)
	})
}

// answering counts a response that begins or ends. After the last one, the wait for the next header begins.
func (c *connLimiter) answering(conn net.Conn, change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, open := c.of[conn]
	if !open {
		return
	}
	known := at.Value.(*connection)
	if known.answering += change; known.answering == 0 {
		c.order.MoveToBack(at)
	}
}
