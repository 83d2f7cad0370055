package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/cpu"
)

// maxShards limits the memory of the shards' key tables.
const maxShards = 32

// Client publishes snapshots to the daemon. Its methods are safe for concurrent use.
type Client struct {
	config Config
	pool   *pool
	shards []shard // a power of two of them
	gate   gate

	_         cpu.CacheLinePad
	armed     atomic.Bool // the sender knows that a shard contains snapshots, or that there is a loss to report
	_         cpu.CacheLinePad
	contended losses // spans refused because all shards were locked

	wake      chan struct{} // signals the sender
	flushes   chan *flush
	closing   chan struct{}
	isClosing atomic.Bool
	done      chan struct{} // closed when the sender has ended
	closeErr  error         // result of Close; set before done is closed
	aborted   context.Context
	abort     context.CancelFunc // ends the sender early; spans that are not sent are lost
	features  *features
	progress
}

// progress contains the state of the sender that Stats returns.
type progress struct {
	daemon   atomic.Pointer[string] // name and version of the daemon; nil while disconnected
	connects atomic.Uint64
	last     atomic.Pointer[connection] // last connection on which the daemon sent a welcome
	sent     atomic.Uint64              // without the spans that are to be resent
	lost     losses                     // spans lost after they were accepted or sent
}

// Open returns a client, which connects in the background and reconnects until it is closed. Open returns
// an error only for an invalid configuration.
func Open(config Config) (*Client, error) {
	config, err := config.complete()
	if err != nil {
		return nil, fmt.Errorf("open client: %w", err)
	}
	c := &Client{
		config:   config,
		pool:     newPool(config.BufferBytes/bufferBytes + max(config.MaxKept, 0)/bufferBytes),
		wake:     make(chan struct{}, 1),
		flushes:  make(chan *flush),
		closing:  make(chan struct{}),
		done:     make(chan struct{}),
		features: newFeatures(),
	}
	c.aborted, c.abort = context.WithCancel(context.Background())
	c.shards = make([]shard, shardCount(config.BufferBytes/bufferBytes))
	for i := range c.shards {
		c.shards[i].pool, c.shards[i].gate = c.pool, &c.gate
	}
	go newSender(c).run()
	return c, nil
}

// shardCount returns twice the number of processors, so that two publishers rarely use the same shard, but
// at most half of the buffers, because sealed buffers need some, too.
func shardCount(buffers int) int {
	want := min(2*runtime.GOMAXPROCS(0), maxShards, buffers/2)
	count := 1
	for 2*count <= want {
		count *= 2
	}
	return count
}

// Publish publishes a batch. If it returns true, all spans of the batch are buffered; otherwise none is,
// and all are counted as refused. It never waits, allocates or makes a system call. The batch and its tag
// lists can be reused immediately.
func (c *Client) Publish(batch []Snapshot) bool {
	if len(batch) == 0 {
		return true
	}
	if r := c.gate.closedReason(); r != none {
		c.refuse(batch, r)
		return false
	}
	accepted, submitted := c.publishToShard(batch)
	if submitted {
		c.wakeSender()
	}
	c.arm()
	return accepted
}

// arm wakes up the sender, unless it already knows that there is something to send.
func (c *Client) arm() {
	if !c.armed.Load() && c.armed.CompareAndSwap(false, true) {
		c.wakeSender()
	}
}

// refuse counts a batch as refused without locking a shard.
func (c *Client) refuse(batch []Snapshot, r reason) {
	c.shards[firstShard()&uint32(len(c.shards)-1)].refused.add(r, len(batch))
	c.arm()
}

// publishToShard adds the batch to the first shard that it can lock, beginning with the shard of this goroutine. If all
// are locked, it refuses the batch, because it must not wait. submitted reports whether the sender has got a buffer to
// send.
func (c *Client) publishToShard(batch []Snapshot) (accepted, submitted bool) {
	first := firstShard()
	for i := range uint32(len(c.shards)) {
		s := c.shard(first + i)
		if s.mu.TryLock() {
			accepted, submitted = s.publish(batch)
			s.mu.Unlock()
			return accepted, submitted
		}
	}
	c.contended.add(bufferFull, len(batch))
	return false, false
}

// shard returns the shard with the given number modulo the number of shards.
func (c *Client) shard(number uint32) *shard {
	mask := uint32(len(c.shards) - 1) // the number of shards is a power of two
	return &c.shards[number&mask]
}

// firstShard returns a number for the shard that this goroutine tries first. It is derived from the address of the
// goroutine's stack, so a goroutine nearly always uses the same shard, whose memory is in the processor's cache.
func firstShard() uint32 {
	var onStack byte
	page := uint64(uintptr(unsafe.Pointer(&onStack))) >> 12
	return uint32(page * 0x9e3779b97f4a7c15 >> 40) // Fibonacci hashing
}

// wakeSender signals the sender, unless a signal is pending already.
func (c *Client) wakeSender() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Flush sends all spans that were published before, and requests that the daemon delivers its statistics
// now. It returns nil when every destination has accepted them. While the daemon is unavailable, Flush
// waits for it until ctx is done.
func (c *Client) Flush(ctx context.Context) error {
	f := &flush{ctx: ctx, answer: make(chan error, 1)}
	select {
	case c.flushes <- f:
	case <-c.closing:
		return fmt.Errorf("flush spans: %w", errClosed)
	case <-ctx.Done():
		return fmt.Errorf("flush spans: wait for the daemon: %w", ctx.Err())
	}
	select {
	case err := <-f.answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("flush spans: wait for the daemon's response: %w", ctx.Err())
	}
}

// Close stops accepting spans, sends the buffered ones, waits a few seconds at most until the daemon
// reports that all spans are settled, and then until the daemon has closed the connection. If the daemon
// cannot settle them because a destination is unavailable, Close does not wait longer. If no daemon is
// available, Close does not wait for one.
//
// When ctx is done before that, spans that are not sent are counted as lost, and sent spans that are not
// settled are counted in Stats.Unsettled.
//
// Close returns an error if spans were lost, or if the daemon did not close the connection in time although
// no destination was unavailable. A second call waits for the first one and returns the same error.
func (c *Client) Close(ctx context.Context) error {
	c.gate.set(closed)
	if c.isClosing.CompareAndSwap(false, true) {
		close(c.closing)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		c.abort()
		<-c.done
	}
	return c.closeErr
}

// Features returns the features that the daemon sent last. Before the first ones, statistics are wanted and
// all lists are empty. The caller must not modify the lists.
func (c *Client) Features() Features { return *c.features.current.Load() }

// FeatureChanges returns a channel that receives a value after Features has changed. All calls return the
// same channel, which buffers one value.
func (c *Client) FeatureChanges() <-chan struct{} { return c.features.changes }

// Stats counts the spans of a client since it was opened. At any moment,
//
//	offered   = Published + sum of Refused
//	Published = Sent + Buffered + sum of Lost
//
// where offered is the number of spans that were passed to Publish.
type Stats struct {
	Published uint64            // accepted by Publish
	Refused   map[string]uint64 // refused by Publish, by reason
	Sent      uint64            // accepted by the socket completely, without those that have to be resent
	Buffered  uint64            // accepted by Publish, and neither sent nor lost yet
	Lost      map[string]uint64 // accepted by Publish and lost, by reason

	// Unsettled is the part of Sent whose outcome the daemon has not reported yet, or whose outcome is
	// still to be asked of the next daemon. After Close, it is the number of spans for which Close did not
	// wait. It is 0 if the daemon does not report outcomes.
	Unsettled uint64
	// Unconfirmed is the maximum number of spans of Sent that were lost with a killed daemon: they were no
	// longer kept, or the next daemon did not know their outcome.
	Unconfirmed uint64
	// Ambiguous is the part of Sent that the daemon was sending to a destination when it was killed. These
	// spans may have arrived, so they are not resent.
	Ambiguous uint64

	Connects  uint64 // number of connections on which the daemon sent a welcome
	Connected bool
	Daemon    string // name and version of the daemon, while connected
}

// Stats returns the current statistics. It can be called after Close as well.
func (c *Client) Stats() Stats {
	// Lost is read first, then Sent, then Published. Spans move in the opposite direction, except that sent spans can
	// become buffered again. So a span that moves meanwhile counts as buffered, and Buffered is never negative.
	var lost [reasons]uint64
	c.lost.addTo(&lost)
	stats := Stats{
		Sent: c.sent.Load(), Lost: named(lost), Unconfirmed: lost[daemonDied], Ambiguous: lost[ambiguous],
	}
	stats.Refused = named(c.refused())
	for i := range c.shards {
		stats.Published += c.shards[i].published.Load()
	}
	stats.Buffered = stats.Published - stats.Sent
	for _, n := range stats.Lost {
		stats.Buffered -= n
	}
	if last := c.last.Load(); last != nil {
		stats.Unsettled = last.unsettled()
	}
	stats.Connects = c.connects.Load()
	if daemon := c.daemon.Load(); daemon != nil {
		stats.Connected, stats.Daemon = true, *daemon
	}
	return stats
}

// refused returns the refused spans by reason.
func (c *Client) refused() (counts [reasons]uint64) {
	c.contended.addTo(&counts)
	for i := range c.shards {
		c.shards[i].refused.addTo(&counts)
	}
	return counts
}

// notCounted returns all spans that the client reports to the daemon as not counted, by reason.
func (c *Client) notCounted() [reasons]uint64 {
	counts := c.refused()
	c.lost.addTo(&counts)
	return counts
}

var (
	errClosed       = errors.New("the client is closed")
	errDisconnected = errors.New("the connection ended before the daemon responded; flush again")
)

// flush is a call of Flush that waits for the daemon's response.
type flush struct {
	ctx    context.Context
	answer chan error // with a buffer for the only response, so that sending it never blocks
}

// resolve passes the daemon's response to the caller.
func (f *flush) resolve(m wire.Flush) {
	if m.OK {
		f.answer <- nil
		return
	}
	f.answer <- fmt.Errorf("flush spans: the daemon could not report them: %s", m.Error)
}

func (f *flush) fail(err error) { f.answer <- fmt.Errorf("flush spans: %w", err) }

// Reasons why spans are refused or lost. They are the keys of Stats.Refused and Stats.Lost, and part of the client's
// reports to the daemon.
const (
	ReasonBufferFull   = "buffer_full"  // no buffer was free, or all shards were locked
	ReasonDisconnected = "disconnected" // the daemon was unavailable for longer than Config.MaxAway
	ReasonTooLarge     = "too_large"    // the batch needs more than all buffers
	ReasonNotWanted    = "not_wanted"   // the Datadog agent accepts no statistics
	ReasonClosed       = "closed"       // published after Close, or not sent before its end
)

// Reasons with which the client reports Stats.Unconfirmed and Stats.Ambiguous to the daemon.
const (
	ReasonDaemonDied = "daemon_died"
	ReasonAmbiguous  = "ambiguous"
)

// reason is one of the reasons as an array index.
type reason uint8

const (
	none reason = iota
	bufferFull
	disconnected
	tooLarge
	notWanted
	closed
	daemonDied // this and the next reason apply to sent spans
	ambiguous
	reasons
)

var reasonNames = [reasons]string{
	none: "", ReasonBufferFull, ReasonDisconnected, ReasonTooLarge,
	ReasonNotWanted, ReasonClosed, ReasonDaemonDied, ReasonAmbiguous,
}

// losses counts spans by reason.
type losses [reasons]atomic.Uint64

func (l *losses) add(r reason, spans int) { l[r].Add(uint64(spans)) }

// addTo adds the counts to total.
func (l *losses) addTo(total *[reasons]uint64) {
	for i := range l {
		total[i] += l[i].Load()
	}
}

// named returns the counts as a map by name, for the reasons that apply to unsent spans. Counts of 0 are included.
func named(counts [reasons]uint64) map[string]uint64 {
	m := make(map[string]uint64, len(counts))
	for r := none + 1; r < daemonDied; r++ {
		m[reasonNames[r]] = counts[r]
	}
	return m
}
