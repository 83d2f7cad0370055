package client

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// lives contains the state that survives a daemon: the outcomes of the spans of each connection. Spans are identified by
// a number, which is their duration and part of their resource.
type lives struct {
	mu           sync.Mutex
	dice         *rand.Rand
	isOrdered    bool // on each connection, the numbers of the spans must increase
	forgets      bool // the next daemon knows no earlier connection
	hasForgotten bool
	lives        map[string]*life
	asked        []string       // tokens of the earlier connections that clients have asked about, in order
	counted      map[uint64]int // by number: how often the span was counted
	doubtful     map[uint64]bool
}

// life is the state of one connection.
type life struct {
	of       *lives
	numbers  []uint64 // numbers of the spans that were read
	ends     []uint64 // number of spans up to the end of each message
	told     uint64   // number of spans that were reported as settled
	outcomes []uint64 // set when the daemon has crashed
	isOver   bool
}

func newLives(seed uint64) *lives {
	return &lives{
		dice: rand.New(rand.NewPCG(seed, 34)), lives: map[string]*life{}, counted: map[uint64]int{},
		doubtful: map[uint64]bool{},
	}
}

// begin sets the token of a connection, and returns the outcomes of an earlier one.
func (l *lives) begin(earlier string, welcome *wire.Welcome) (*life, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if earlier != "" {
		l.asked = append(l.asked, earlier)
		l.hasForgotten = l.hasForgotten || l.forgets
		before := l.lives[earlier]
		if before == nil || !before.isOver {
			return nil, fmt.Errorf("asked about %q, of which no daemon has died", earlier)
		}
		if !l.forgets {
			welcome.Earlier = before.outcomes
		}
	}
	welcome.Token = fmt.Sprint("life ", len(l.lives))
	l.lives[welcome.Token] = &life{of: l}
	return l.lives[welcome.Token], nil
}

// take records a span.
func (l *life) take(key []byte, number uint64) error {
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
	if n := len(l.numbers); l.of.isOrdered && n > 0 && l.numbers[n-1] >= number {
		return fmt.Errorf("span %d came behind %d", number, l.numbers[n-1])
	}
	l.numbers = append(l.numbers, number)
	return nil
}

func (l *life) spans() uint64 { return uint64(len(l.numbers)) }

func (l *life) endMessage() {
	if l != nil {
		l.ends = append(l.ends, l.spans())
	}
}

// leave ends the connection gracefully: all spans are counted.
func (l *life) leave() {
	if l == nil || l.isOver {
		return
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.isOver = true
	for _, number := range l.numbers {
		l.of.counted[number]++
	}
}

// die chooses random outcomes for the messages: some are settled, including all that were reported as settled, and each
// of the others is in doubt or has to be resent.
func (l *life) die() {
	if l == nil || l.isOver {
		return
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.isOver = true
	settled := l.told
	for _, end := range l.ends {
		if end > settled && l.of.dice.IntN(3) > 0 {
			break
		}
		settled = max(settled, end)
	}
	l.outcomes = wire.AppendOutcome(nil, settled, wire.Settled)
	for _, number := range l.numbers[:settled] {
		l.of.counted[number]++
	}
	at, what := settled, wire.Doubtful
	for _, end := range l.ends {
		if end <= at {
			continue
		}
		if l.of.dice.IntN(4) == 0 {
			what = wire.Doubtful + wire.Resend - what
		}
		if what == wire.Doubtful {
			for _, number := range l.numbers[at:end] {
				l.of.doubtful[number] = true
			}
		}
		l.outcomes = wire.AppendOutcome(l.outcomes, end, what)
		at = end
	}
}

// settleSome reports some messages of each connection as settled.
func (d *fakeDaemon) settleSome() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		if c.life == nil || len(c.life.ends) == 0 {
			continue
		}
		d.lives.mu.Lock()
		c.life.told = max(c.life.told, c.life.ends[d.lives.dice.IntN(len(c.life.ends))])
		d.lives.mu.Unlock()
		c.SetWriteDeadline(time.Now().Add(time.Second))
		c.Write(wire.AppendFeatures(nil, &wire.Announcement{Features: d.features, Settled: c.life.told}))
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
