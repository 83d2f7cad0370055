package client

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

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
