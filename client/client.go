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

const maxShards = 32

// Client publishes snapshots to the daemon. Its methods are safe for concurrent use.
type Client struct {
	config Config
	pool   *pool
	shards []shard // a power of two of them
	gate   gate

	_         cpu.CacheLinePad
	armed     atomic.Bool // the sender knows that a shard is not empty, or that there is a loss to report
	_         cpu.CacheLinePad
	contended losses // refused because no shard could be locked

	wake      chan struct{} // holds a token when the sender has work
	flushes   chan *flush
	closing   chan struct{}
	isClosing atomic.Bool
	done      chan struct{} // closed when the sender has ended
	closeErr  error         // set before done is closed
	aborted   context.Context
	abort     context.CancelFunc // anything not sent by then is lost
	features  *features
	progress
}

// progress is the state of the sender for Stats.
type progress struct {
	daemon   atomic.Pointer[string] // version of the daemon; nil while disconnected
	connects atomic.Uint64
	last     atomic.Pointer[connection] // last connection that was accepted
	sent     atomic.Uint64              // spans to send again are subtracted
	lost     losses                     // lost after they were accepted, or sent
}

// Open returns a client, which connects in the background and retries until it is closed. It fails
// only for an invalid config.
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

// shardCount returns twice the number of processors, so that publishers rarely contend, but leaves
// half of the buffers for sealed ones.
func shardCount(buffers int) int {
	want := min(2*runtime.GOMAXPROCS(0), maxShards, buffers/2)
	count := 1
	for 2*count <= want {
		count *= 2
	}
	return count
}

// Publish publishes a batch. It returns true if all of it is buffered. Otherwise it returns false,
// nothing of the batch is buffered, and its spans are counted as refused. It never blocks,
// allocates or makes a system call. The batch and its slices of tags can be reused afterwards.
func (c *Client) Publish(batch []Snapshot) bool {
	if len(batch) == 0 {
		return true
	}
	if why := c.gate.shut(); why != none {
		c.refuse(batch, why)
		return false
	}
	accepted, sealed := c.publish(batch)
	if sealed {
		c.wakeSender()
	}
	c.arm()
	return accepted
}

// arm wakes the sender, unless it is armed already.
func (c *Client) arm() {
	if !c.armed.Load() && c.armed.CompareAndSwap(false, true) {
		c.wakeSender()
	}
}

// refuse counts a batch as refused without locking a shard.
func (c *Client) refuse(batch []Snapshot, why reason) {
	c.shards[home()&uint32(len(c.shards)-1)].refused.add(why, len(batch))
	c.arm()
}

// publish encodes a batch into the first shard that it can lock, starting with the goroutine's own.
// It tries each shard only once, because a locked one is in use by another publisher, and trying
// again would mean waiting.
func (c *Client) publish(batch []Snapshot) (accepted, sealed bool) {
	first := home()
	for i := range uint32(len(c.shards)) {
		s := &c.shards[(first+i)&uint32(len(c.shards)-1)]
		if s.mu.TryLock() {
			accepted, sealed = s.publish(batch)
			s.mu.Unlock()
			return accepted, sealed
		}
	}
	c.contended.add(bufferFull, len(batch))
	return false, false
}

// home returns the shard that a goroutine tries first, a hash of the address of its stack. It is
// nearly always the same, so that its memory is in the processor's cache.
func home() uint32 {
	var here byte
	page := uint64(uintptr(unsafe.Pointer(&here))) >> 12
	return uint32(page * 0x9e3779b97f4a7c15 >> 40) // Fibonacci hashing
}

// wakeSender leaves a token for the sender, unless there is one.
func (c *Client) wakeSender() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Flush sends everything published before, requests a flush from the daemon, and returns nil when
// every destination has accepted it. If the daemon is unreachable, Flush waits for it until ctx
// ends.
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
		return fmt.Errorf("flush spans: wait for the daemon's answer: %w", ctx.Err())
	}
}

// Close refuses further batches, sends buffered spans, waits some seconds at most for their
// outcome, and then until the daemon has closed its end. It does not wait longer for a daemon whose
// destination is unavailable. When ctx ends first, spans that are not sent are counted as lost;
// spans sent without an outcome are Stats.Unsettled. If no daemon listens on the socket, Close does
// not wait for one.
//
// It returns an error if spans were lost or the daemon did not close its end, unless the daemon is
// waiting for a destination. A second Close waits for the first and returns the same result.
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

// Features returns the features that the daemon last sent. Before the first, statistics are wanted
// and the lists are empty. The caller must not modify the lists.
func (c *Client) Features() Features { return *c.features.now.Load() }

// FeatureChanges receives when Features has changed since the last receive. There is one channel
// per client, with a buffer of one.
func (c *Client) FeatureChanges() <-chan struct{} { return c.features.changes }

// Stats contains the counters of a client, in spans. At any moment
//
//	offered   = Published + sum of Refused
//	Published = Sent + Buffered + sum of Lost
//
// where offered is the number of spans passed to Publish.
type Stats struct {
	Published uint64            // accepted by Publish
	Refused   map[string]uint64 // not accepted by Publish, by reason
	Sent      uint64            // written to the socket completely, and not to be sent again
	Buffered  uint64            // accepted, and neither sent nor lost
	Lost      map[string]uint64 // accepted, and lost, by reason

	// Unsettled is the part of Sent without an outcome from the daemon or its crashed predecessor. After
	// Close it is the part that Close did not wait for. It is 0 if the daemon does not report outcomes.
	Unsettled uint64
	// Unconfirmed is the maximum part of Sent that was lost when a daemon crashed, because the spans
	// were not kept any more, or because it was unknown whether they were delivered.
	Unconfirmed uint64
	// Ambiguous is the part of Sent that was being sent to a destination when the daemon crashed. These
	// spans may have arrived, and are not sent again.
	Ambiguous uint64

	Connects  uint64 // number of connections to a daemon
	Connected bool
	Daemon    string // version of the daemon, while connected
}

// Stats returns the counters. It can be called at any time, also after Close.
func (c *Client) Stats() Stats {
	// Read sent and lost spans before published ones, and lost spans before sent ones, which can become
	// buffered again. So a span that moves in the meantime counts as buffered, and the number of buffered
	// spans is never negative.
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

func (c *Client) refused() (counts [reasons]uint64) {
	c.contended.addTo(&counts)
	for i := range c.shards {
		c.shards[i].refused.addTo(&counts)
	}
	return counts
}

// lostAndRefused returns the losses to report to the daemon.
func (c *Client) lostAndRefused() [reasons]uint64 {
	counts := c.refused()
	c.lost.addTo(&counts)
	return counts
}

var (
	errClosed    = errors.New("the client is closed")
	errLeftAlone = errors.New("the connection ended before the daemon answered: flush again")
)

// flush is one call of Flush.
type flush struct {
	ctx    context.Context
	answer chan error // has a buffer of one, so sending does not block
	sent   uint64     // spans sent on the connection before the request
}

// resolve converts the daemon's reply to the result of Flush.
func (f *flush) resolve(m wire.Flush) {
	if m.OK {
		f.answer <- nil
		return
	}
	f.answer <- fmt.Errorf("flush spans: the daemon could not report them: %s", m.Error)
}

func (f *flush) fail(err error) { f.answer <- fmt.Errorf("flush spans: %w", err) }

// Reasons for refused and lost spans: the keys of Stats.Refused and Stats.Lost, also in reports to the daemon.
const (
	ReasonBufferFull   = "buffer_full"  // no buffer was free, or every shard was being written to
	ReasonDisconnected = "disconnected" // the daemon was unreachable for longer than Config.MaxAway
	ReasonTooLarge     = "too_large"    // the batch is larger than all buffers
	ReasonNotWanted    = "not_wanted"   // the agent does not accept statistics
	ReasonClosed       = "closed"       // published after Close, or not sent when Close returned
)

// Reasons for Stats.Unconfirmed and Stats.Ambiguous in reports to the daemon.
const (
	ReasonDaemonDied = "daemon_died"
	ReasonAmbiguous  = "ambiguous"
)

// reason is an index for counting.
type reason uint8

const (
	none reason = iota
	bufferFull
	disconnected
	tooLarge
	notWanted
	closed
	daemonDied // this and the next are of what was sent
	ambiguous
	reasons
)

var reasonNames = [reasons]string{
	none: "", ReasonBufferFull, ReasonDisconnected, ReasonTooLarge,
	ReasonNotWanted, ReasonClosed, ReasonDaemonDied, ReasonAmbiguous,
}

// losses counts spans by reason.
type losses [reasons]atomic.Uint64

func (l *losses) add(why reason, spans int) { l[why].Add(uint64(spans)) }

// addTo adds the counts to a total.
func (l *losses) addTo(total *[reasons]uint64) {
	for i := range l {
		total[i] += l[i].Load()
	}
}

// named returns the counts by reason, without those of spans that were sent. All reasons are
// present.
func named(counts [reasons]uint64) map[string]uint64 {
	m := make(map[string]uint64, len(counts))
	for why := none + 1; why < daemonDied; why++ {
		m[reasonNames[why]] = counts[why]
	}
	return m
}
