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

// Client publishes snapshots to the daemon. Its methods may be called from any
// goroutine.
type Client struct {
	config Config
	pool   *pool
	shards []shard // a power of two of them
	gate   gate

	_         cpu.CacheLinePad
	armed     atomic.Bool // the sender knows that a shard holds something, or that there is a loss to report
	_         cpu.CacheLinePad
	contended losses // refused while no shard could be locked

	wake      chan struct{} // the sender has something to look at
	flushes   chan *flush
	closing   chan struct{}
	isClosing atomic.Bool
	done      chan struct{} // the sender has ended
	closeErr  error         // set before done
	aborted   context.Context
	abort     context.CancelFunc // what is not sent by now is lost
	features  *features
	progress
}

// progress is what the sender has done, which Stats tells.
type progress struct {
	daemon   atomic.Pointer[string] // what it calls itself, nil while it is away
	connects atomic.Uint64
	last     atomic.Pointer[connection] // that was welcomed
	sent     atomic.Uint64              // what is handed over again is taken off before
	lost     losses                     // after they were accepted, or sent
}

// Open returns a client, which connects in the background and goes on trying
// for as long as it lives. It fails only for a config that cannot work.
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

// shardCount is twice the processors, so that two publishers seldom try the
// same one, but leaves half of the buffers to what is sealed.
func shardCount(buffers int) int {
	want := min(2*runtime.GOMAXPROCS(0), maxShards, buffers/2)
	count := 1
	for 2*count <= want {
		count *= 2
	}
	return count
}

// Publish hands over a batch. True: all of it is buffered. False: none of it is,
// and its spans are counted as refused. It never waits, allocates or calls the
// system. The batch and its lists of tags may be used again at once.
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

// arm tells the sender that there is something, unless it knows.
func (c *Client) arm() {
	if !c.armed.Load() && c.armed.CompareAndSwap(false, true) {
		c.wakeSender()
	}
}

// refuse counts a batch that need not be looked at. No shard is locked for it.
func (c *Client) refuse(batch []Snapshot, why reason) {
	c.shards[home()&uint32(len(c.shards)-1)].refused.add(why, len(batch))
	c.arm()
}

// publish tries every shard once, from the goroutine's own one on. A shard that is locked
// belongs to a publisher who is writing to it at this moment: to try again would
// be to wait.
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

// home is where a goroutine tries first, by where its stack lies: nearly always
// the same shard, whose memory its processor then has at hand.
func home() uint32 {
	var here byte
	page := uint64(uintptr(unsafe.Pointer(&here))) >> 12
	return uint32(page * 0x9e3779b97f4a7c15 >> 40) // Fibonacci hashing
}

// wakeSender leaves word for the sender. Word that is there already will do.
func (c *Client) wakeSender() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Flush sends everything that was published before, asks the daemon to report
// now, and returns nil when the daemon says that every destination accepted it. While
// the daemon is away it waits for it, as long as ctx lasts.
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

// Close refuses what is published from now on, sends what is buffered, waits some
// seconds at most until the daemon says what became of it, and then until the
// daemon has closed its end. A daemon whose destination is away says nothing for
// as long, and is left. When ctx ends first, what is not sent is counted as
// lost, and what is sent and has no outcome yet is Stats.Unsettled. If nobody
// listens on the socket, Close does not wait for somebody to come.
//
// It returns an error when spans were lost or the daemon did not close its end,
// but for one that was left because it waits for a destination. A second Close
// waits for the first and returns the same.
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

// Features returns what the daemon said last. Before it said anything stats are
// wanted and the lists are empty. The lists are shared: do not change them.
func (c *Client) Features() Features { return *c.features.now.Load() }

// FeatureChanges receives when Features has changed since the last receive.
// There is one channel a client, with room for one notice.
func (c *Client) FeatureChanges() <-chan struct{} { return c.features.changes }

// Stats is what a client has done since it was opened, in spans. At any moment
//
//	offered   = Published + sum of Refused
//	Published = Sent + Buffered + sum of Lost
//
// where offered is what Publish was called with.
type Stats struct {
	Published uint64            // accepted by Publish
	Refused   map[string]uint64 // not accepted by Publish, by reason
	Sent      uint64            // of which the socket took every byte, and which need not be sent again
	Buffered  uint64            // accepted, and neither sent nor lost yet
	Lost      map[string]uint64 // accepted, and lost, by reason

	// Unsettled is how many of Sent the daemon, or the one before it that died, has not said an
	// outcome of yet. After Close it is what was not waited for. 0 where a daemon never says so.
	Unsettled uint64
	// Unconfirmed is how many of Sent a daemon that died took with it, at most, because they were
	// not kept any more, or because nobody knew whether they were delivered.
	Unconfirmed uint64
	// Ambiguous is how many of Sent were on their way to a destination when the daemon died: they
	// may have arrived, and are not sent again.
	Ambiguous uint64

	Connects  uint64 // how often a daemon has welcomed this client
	Connected bool
	Daemon    string // what the daemon calls itself, while connected
}

// Stats may be asked at any time, also after Close.
func (c *Client) Stats() Stats {
	// The spans that have left are read before the spans that have come, and what is lost for good
	// before what is sent, of which some may come back. So a span that passes through meanwhile counts
	// as buffered, and the number of buffered spans is never negative.
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

// notCounted is everything that the daemon should hear of as lost.
func (c *Client) notCounted() [reasons]uint64 {
	counts := c.refused()
	c.lost.addTo(&counts)
	return counts
}

var (
	errClosed    = errors.New("the client is closed")
	errLeftAlone = errors.New("the connection ended before the daemon answered: flush again")
)

// flush is one caller who waits for the daemon's answer.
type flush struct {
	ctx    context.Context
	answer chan error // has room for the one answer, so nobody waits to give it
	handed uint64     // spans of the connection when it was asked
}

// resolve turns the daemon's answer into the caller's error.
func (f *flush) resolve(m wire.Flush) {
	if m.OK {
		f.answer <- nil
		return
	}
	f.answer <- fmt.Errorf("flush spans: the daemon could not report them: %s", m.Error)
}

func (f *flush) fail(err error) { f.answer <- fmt.Errorf("flush spans: %w", err) }

// The reasons under which a span is refused or lost: the keys of Stats.Refused
// and Stats.Lost, and of what the daemon is told.
const (
	ReasonBufferFull   = "buffer_full"  // no buffer was free, or every shard was being written to
	ReasonDisconnected = "disconnected" // the daemon was away for longer than Config.MaxAway
	ReasonTooLarge     = "too_large"    // the batch needs more than all buffers
	ReasonNotWanted    = "not_wanted"   // the agent behind the daemon takes no stats
	ReasonClosed       = "closed"       // published after Close, or not sent by the end of it
)

// The reasons under which the daemon is told of Stats.Unconfirmed and Stats.Ambiguous.
const (
	ReasonDaemonDied = "daemon_died"
	ReasonAmbiguous  = "ambiguous"
)

// reason is an index, because a publisher counts by it.
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

// named is the counts of what was not sent by the names of their reasons, each of which is there.
func named(counts [reasons]uint64) map[string]uint64 {
	m := make(map[string]uint64, len(counts))
	for why := none + 1; why < daemonDied; why++ {
		m[reasonNames[why]] = counts[why]
	}
	return m
}
