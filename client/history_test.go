package client

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// history contains the state that survives a daemon: the outcomes of the spans of each connection. Spans are identified by
// a number, which is their duration and part of their resource.
type history struct {
	mu           sync.Mutex
	dice         *rand.Rand
	isOrdered    bool // on each connection, the numbers of the spans must increase
	discards     bool // the next daemon has no outcomes of earlier connections
	hasDiscarded bool
	conns        map[string]*connHistory
	asked        []string       // tokens of the earlier connections that clients have asked about, in order
	counted      map[uint64]int // by number: how often the span was counted
	doubtful     map[uint64]bool
}

// connHistory is the state of one connection.
type connHistory struct {
	owner    *history
	numbers  []uint64 // numbers of the spans that were read
	ends     []uint64 // number of spans up to the end of each message
	reported uint64   // number of spans that were reported as settled
	outcomes []uint64 // set when the daemon has crashed
	isOver   bool
}

func newHistory(seed uint64) *history {
	return &history{
		dice: rand.New(rand.NewPCG(seed, 34)), conns: map[string]*connHistory{}, counted: map[uint64]int{},
		doubtful: map[uint64]bool{},
	}
}

// begin sets the token of a connection, and returns the outcomes of an earlier one.
func (l *history) begin(earlier string, welcome *wire.Welcome) (*connHistory, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if earlier != "" {
		l.asked = append(l.asked, earlier)
		l.hasDiscarded = l.hasDiscarded || l.discards
		before := l.conns[earlier]
		if before == nil || !before.isOver {
			return nil, fmt.Errorf("asked about %q, which is not a connection of a crashed daemon", earlier)
		}
		if !l.discards {
			welcome.Earlier = before.outcomes
		}
	}
	welcome.Token = fmt.Sprint("connection ", len(l.conns))
	l.conns[welcome.Token] = &connHistory{owner: l}
	return l.conns[welcome.Token], nil
}

// receive records a span.
func (l *connHistory) receive(key []byte, number uint64) error {
	if l == nil {
		return nil
	}
	var k Key
	if err := wire.ReadKey(&k, key); err != nil {
		return err
	}
	if k.Resource != resourceOf(number) {
		return fmt.Errorf("span %d has the resource %q", number, k.Resource)
	}
	if n := len(l.numbers); l.owner.isOrdered && n > 0 && l.numbers[n-1] >= number {
		return fmt.Errorf("span %d came after %d", number, l.numbers[n-1])
	}
	l.numbers = append(l.numbers, number)
	return nil
}

func (l *connHistory) spans() uint64 { return uint64(len(l.numbers)) }

func (l *connHistory) endMessage() {
	if l != nil {
		l.ends = append(l.ends, l.spans())
	}
}

// disconnect ends the connection gracefully: all spans are counted.
func (l *connHistory) disconnect() {
	if l == nil || l.isOver {
		return
	}
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	l.isOver = true
	for _, number := range l.numbers {
		l.owner.counted[number]++
	}
}

// crash chooses random outcomes for the messages: some are settled, including all that were reported as settled, and each
// of the others is in doubt or has to be resent.
func (l *connHistory) crash() {
	if l == nil || l.isOver {
		return
	}
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	l.isOver = true
	settled := l.reported
	for _, end := range l.ends {
		if end > settled && l.owner.dice.IntN(3) > 0 {
			break
		}
		settled = max(settled, end)
	}
	l.outcomes = wire.AppendOutcome(nil, settled, wire.Settled)
	for _, number := range l.numbers[:settled] {
		l.owner.counted[number]++
	}
	at, outcome := settled, wire.Ambiguous
	for _, end := range l.ends {
		if end <= at {
			continue
		}
		if l.owner.dice.IntN(4) == 0 {
			outcome = wire.Ambiguous + wire.Resend - outcome
		}
		if outcome == wire.Ambiguous {
			for _, number := range l.numbers[at:end] {
				l.owner.doubtful[number] = true
			}
		}
		l.outcomes = wire.AppendOutcome(l.outcomes, end, outcome)
		at = end
	}
}

// settleSome reports some messages of each connection as settled.
func (d *fakeDaemon) settleSome() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		if c.history == nil || len(c.history.ends) == 0 {
			continue
		}
		d.history.mu.Lock()
		c.history.reported = max(c.history.reported, c.history.ends[d.history.dice.IntN(len(c.history.ends))])
		d.history.mu.Unlock()
		c.SetWriteDeadline(time.Now().Add(time.Second))
		c.Write(wire.AppendFeatures(nil, &wire.Announcement{Features: d.features, Settled: c.history.reported}))
		c.SetWriteDeadline(time.Time{}) // otherwise, later responses would fail on a slow machine
	}
}

// resourceOf returns the resource of the span with a number.
func resourceOf(number uint64) string { return fmt.Sprint("GET /", number%700) }

// numbered returns a batch of spans with consecutive numbers.
func numbered(first uint64, size int) []Snapshot {
	batch := make([]Snapshot, size)
	for i := range batch {
		number := first + uint64(i)
		batch[i] = Snapshot{
			Key:      Key{Service: "shop", Operation: "http.request", Resource: resourceOf(number)},
			Duration: time.Duration(number), End: time.Unix(1_700_000_000, int64(number)),
		}
	}
	return batch
}
