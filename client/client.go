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

	_               cpu.CacheLinePad
	isSendScheduled atomic.Bool // the sender knows that there are spans to send or losses to report
	_               cpu.CacheLinePad
	contended       losses // spans refused because all shards were locked

	wake      chan struct{} // signals the sender
	flushes   chan *flush
	closing   chan struct{} // closed when Close is called
	isClosing atomic.Bool
	done      chan struct{}      // closed when the sender has ended
	closeErr  error              // result of Close; set before done is closed
	ctx       context.Context    // ends when the context of Close ends, or the sender has ended
	cancel    context.CancelFunc // ends the sender early; spans that are not sent are lost
	features  *features
	progress
}

// progress contains the state of the sender that Stats returns.
type progress struct {
	daemonName atomic.Pointer[string] // name and version of the daemon; nil while disconnected
	connects   atomic.Uint64
	lastConn   atomic.Pointer[connection] // last connection on which the daemon sent a welcome
	sent       atomic.Uint64              // without the spans that are to be resent
	lost       losses                     // spans lost after they were accepted or sent
}

// Open returns a client. It does not wait for the daemon: the client connects in the background, and reconnects until
// it is closed. Open returns an error only if the configuration is invalid.
func Open(config Config) (*Client, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open client: %w", err)
	}
	sendBuffers := config.BufferBytes / bufferBytes
	keptBuffers := max(config.MaxKept, 0) / bufferBytes
	c := &Client{
		config:   config,
		pool:     newPool(sendBuffers + keptBuffers),
		shards:   make([]shard, shardCount(sendBuffers)),
		wake:     make(chan struct{}, 1),
		flushes:  make(chan *flush),
		closing:  make(chan struct{}),
		done:     make(chan struct{}),
		features: newFeatures(),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for i := range c.shards {
		c.shards[i].pool = c.pool
		c.shards[i].gate = &c.gate // through it, Close makes all shards refuse spans
	}
	go newSender(c).run()
	return c, nil
}

// shardCount returns the number of shards, independently locked parts, of a client with the given number of
// buffers. It is the largest power of two that exceeds neither twice the number of processors, nor maxShards, nor
// half the number of buffers; at least 1.
func shardCount(buffers int) int {
	limit := min(2*runtime.GOMAXPROCS(0), maxShards, buffers/2)
	count := 1
	for 2*count <= limit {
		count *= 2
	}
	return count
}

// Publish copies finished spans to the buffers of the client, to be sent later, and returns true. If the batch does
// not fit as a whole, Publish counts all its spans as refused and returns false. It never waits, allocates or makes
// a system call. The caller can reuse the batch and its tag lists immediately.
func (c *Client) Publish(batch []Snapshot) bool {
	if len(batch) == 0 {
		return true
	}
	if refusal := c.gate.closedReason(); refusal != noReason {
		c.refuse(batch, refusal)
		return false
	}
	accepted, hasFullBuffer := c.publishToShard(batch)
	if hasFullBuffer {
		c.wakeSender() // the sender then sends full buffers immediately
	}
	c.scheduleSend() // for spans in other buffers, and refused spans
	return accepted
}

// scheduleSend makes the sender, the goroutine that sends spans, send all published spans in time, and report losses.
// It does nothing while an earlier call has scheduled a send that has not begun.
func (c *Client) scheduleSend() {
	if c.isSendScheduled.Load() { // the common case, and cheaper than Swap
		return
	}
	wasScheduled := c.isSendScheduled.Swap(true)
	if !wasScheduled {
		c.wakeSender() // the sender then starts a timer
	}
}

// refuse counts a batch as refused, without locking a shard.
func (c *Client) refuse(batch []Snapshot, refusal reason) {
	c.shard(firstShard()).refused.add(refusal, len(batch))
	c.scheduleSend()
}

// publishToShard adds the batch to one of the client's shards, which are buffers with separate locks. It begins
// with the shard that firstShard selects, and takes the first one that is not locked. If all are locked, it refuses
// the batch instead of waiting. hasFullBuffer reports whether a full buffer is ready to be sent.
func (c *Client) publishToShard(batch []Snapshot) (accepted, hasFullBuffer bool) {
	first := firstShard()
	for i := range uint32(len(c.shards)) {
		s := c.shard(first + i)
		if s.mu.TryLock() {
			accepted, hasFullBuffer = s.publish(batch)
			s.mu.Unlock()
			return accepted, hasFullBuffer
		}
	}
	c.contended.add(bufferFull, len(batch)) // a locked shard counts as a full one
	return false, false
}

// shard returns the shard with the given number modulo the number of shards.
func (c *Client) shard(number uint32) *shard {
	mask := uint32(len(c.shards) - 1) // the number of shards is a power of two
	return &c.shards[number&mask]
}

// firstShard returns a number that selects the shard, a part of the client's buffers, that this goroutine should
// try first. It is a hash of the address of the goroutine's stack, which no other goroutine shares. So a goroutine
// nearly always gets the same shard, whose memory is then in the processor's cache.
func firstShard() uint32 {
	const pageBits = 12
	const goldenRatio = 0x9e3779b97f4a7c15 // for Fibonacci hashing
	var onStack byte
	page := uint64(uintptr(unsafe.Pointer(&onStack))) >> pageBits
	hash := page * goldenRatio
	return uint32(hash >> 32) // the upper half, because only upper bits of the product depend on all bits of page
}

// wakeSender signals the sender, unless a signal is pending already.
func (c *Client) wakeSender() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Flush sends all spans that were published before, and asks the daemon to export its statistics now. It returns
// nil when all destinations to which the daemon exports have accepted the statistics. While the daemon is
// unavailable, Flush waits until ctx is done.
func (c *Client) Flush(ctx context.Context) error {
	f := newFlush(ctx)
	select {
	case c.flushes <- f:
	case <-c.closing:
		return fmt.Errorf("flush spans: %w", errClosed)
	case <-ctx.Done():
		return fmt.Errorf("flush spans: wait for the daemon: %w", ctx.Err())
	}
	select {
	case err := <-f.result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("flush spans: wait for the daemon's response: %w", ctx.Err())
	}
}

// Close makes Publish refuse spans, and sends all buffered spans. Then it waits until the daemon has delivered the
// spans, at most a few seconds, and after that until the daemon has closed the connection. It does not wait for a
// daemon or a destination that is unavailable. When ctx is done, spans that are not sent count as lost.
//
// Close returns an error if spans were lost, or if the daemon did not close the connection. A second call waits for the
// first one and returns the same error.
func (c *Client) Close(ctx context.Context) error {
	c.gate.refuse(closed)
	if c.isClosing.CompareAndSwap(false, true) {
		close(c.closing)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		c.cancel()
		<-c.done
	}
	return c.closeErr
}

// Features returns the features that the daemon sent last. Before the first ones, statistics are wanted and
// all lists are empty. The caller must not modify the lists.
func (c *Client) Features() Features { return *c.features.current.Load() }

// FeatureChanges returns a channel that receives a value when the result of Features has changed. All calls return the
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
	Sent      uint64            // completely written to the socket; spans that must be resent do not count
	Buffered  uint64            // accepted by Publish, and neither sent nor lost yet
	Lost      map[string]uint64 // accepted by Publish and lost without being sent, by reason

	// Unsettled is the part of Sent that the daemon has reported neither as delivered nor as lost. After
	// Close, it is the number of spans for which Close did not wait. It is 0 if the daemon does not send
	// such reports.
	Unsettled uint64
	// Unconfirmed is the part of Sent that may have been lost when a daemon was killed. The client had already
	// deleted its copy of these spans, or the next daemon did not know whether they were delivered.
	Unconfirmed uint64
	// Ambiguous is the part of Sent that a daemon was sending to a destination when it was killed. These
	// spans may have arrived, so the client does not resend them, although it could.
	Ambiguous uint64

	Connects  uint64 // number of connections on which the daemon sent a welcome
	Connected bool
	Daemon    string // name and version of the daemon, while connected
}

// Stats returns the current statistics. It can be called after Close as well.
func (c *Client) Stats() Stats {
	var stats Stats
	c.readSpanCounts(&stats)
	stats.Refused = countsByName(c.refusedSpans())
	if conn := c.lastConn.Load(); conn != nil {
		stats.Unsettled = conn.unsettled()
	}
	stats.Connects = c.connects.Load()
	if name := c.daemonName.Load(); name != nil {
		stats.Connected = true
		stats.Daemon = *name
	}
	return stats
}

// readSpanCounts sets the fields of stats that count published, sent, buffered and lost spans. It reads the
// counters of published spans last: otherwise, a span that is published and sent during the call could make
// Buffered negative.
func (c *Client) readSpanCounts(stats *Stats) {
	var lost [reasons]uint64
	c.lost.addTo(&lost)
	stats.Lost = countsByName(lost)
	stats.Unconfirmed = lost[daemonDied]
	stats.Ambiguous = lost[ambiguous]
	stats.Sent = c.sent.Load()
	for i := range c.shards {
		stats.Published += c.shards[i].published.Load()
	}
	stats.Buffered = stats.Published - stats.Sent
	for _, count := range stats.Lost {
		stats.Buffered -= count
	}
}

// refusedSpans returns the numbers of refused spans, by reason.
func (c *Client) refusedSpans() (counts [reasons]uint64) {
	c.contended.addTo(&counts)
	for i := range c.shards {
		c.shards[i].refused.addTo(&counts)
	}
	return counts
}

// notCounted returns the numbers of refused and lost spans, by reason. The client reports them to the daemon.
func (c *Client) notCounted() [reasons]uint64 {
	counts := c.refusedSpans()
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
	result chan error // with a buffer for the only result, so that sending it never blocks
}

func newFlush(ctx context.Context) *flush { return &flush{ctx: ctx, result: make(chan error, 1)} }

// resolve ends the call of Flush that waits for the daemon's response. Flush returns nil if response.OK is true,
// and otherwise an error with the daemon's message.
func (f *flush) resolve(response wire.Flush) {
	if response.OK {
		f.result <- nil
		return
	}
	f.result <- fmt.Errorf("flush spans: the daemon could not report them: %s", response.Error)
}

// fail ends the call with an error.
func (f *flush) fail(err error) { f.result <- fmt.Errorf("flush spans: %w", err) }

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
	noReason reason = iota
	bufferFull
	disconnected
	tooLarge
	notWanted
	closed
	daemonDied
	ambiguous
	reasons
)

// firstSentReason is the first of the reasons that apply to spans that were sent already. They follow all others.
const firstSentReason = daemonDied

var reasonNames = [reasons]string{
	noReason: "", ReasonBufferFull, ReasonDisconnected, ReasonTooLarge,
	ReasonNotWanted, ReasonClosed, ReasonDaemonDied, ReasonAmbiguous,
}

// losses counts spans by reason.
type losses [reasons]atomic.Uint64

func (l *losses) add(why reason, spans int) { l[why].Add(uint64(spans)) }

// addTo adds the counts to total.
func (l *losses) addTo(total *[reasons]uint64) {
	for i := range l {
		total[i] += l[i].Load()
	}
}

// countsByName returns counts as a map from the name of the reason to the count, including counts of 0. It leaves
// out daemonDied and ambiguous, the reasons that apply to spans that were sent.
func countsByName(counts [reasons]uint64) map[string]uint64 {
	byName := make(map[string]uint64, firstSentReason)
	for why := noReason + 1; why < firstSentReason; why++ {
		byName[reasonNames[why]] = counts[why]
	}
	return byName
}
