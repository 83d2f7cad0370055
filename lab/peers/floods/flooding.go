package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

const (
	intervals   = 10
	oftenEnough = 3 // minimum number of times in each interval
	batchSpans  = 64
	pause       = 100 * time.Millisecond // pause between two bursts
)

// sender publishes a flood and regular keys as one tracer, and records which regular keys it
// used.
type sender struct {
	generator *workload.Generator
	publisher *admit.Publisher
	numbered  bool
	batch     []workload.Snapshot
	key, body []byte
	honest    map[string]int     // number of a regular key by its encoding
	numbers   map[*span.Key]int  // cache of the number by the generator's key; -1 for a key of the flood
	came      [intervals][]int   // uses of each regular key, by interval and number
	rows      [intervals][]int64 // spans in the row of each regular key, by interval and number
	interval  int
	delivered int // finished cycles; each is one interval, because no flush is requested
}

// run floods ten intervals and counts which keys kept their rows.
func (f flooding) run() (k kept, err error) {
	s := &sender{
		honest: map[string]int{}, numbers: map[*span.Key]int{},
		batch: make([]workload.Snapshot, batchSpans),
	}
	name := workload.Flood(f.Shape, f.Percent)
	if s.generator, err = workload.New(name, 1); err != nil {
		return k, fmt.Errorf("draw spans: %w", err)
	}
	s.numbered = workload.UsesNumbers(name)
	for i, key := range workload.Honest(f.Shape) {
		s.honest[string(wire.AppendKey(nil, &key))] = i
	}
	for i := range intervals {
		s.came[i], s.rows[i] = make([]int, workload.HonestKeys), make([]int64, workload.HonestKeys)
	}
	counting := aggregate.DefaultConfig()
	counting.Deliver = s.deliver
	aggregator, err := aggregate.New(counting)
	if err != nil {
		return k, fmt.Errorf("make aggregator: %w", err)
	}
	config := admit.DefaultConfig()
	config.Aggregator, config.Block = aggregator, true
	publishers, err := admit.New(config)
	if err != nil {
		return k, fmt.Errorf("make publishers: %w", err)
	}
	aggregator.Start()
	s.publisher = publishers.NewConnection(span.Origin{Service: "shop", Lang: "go"}, 1)
	time.Sleep(pause / 2) // so that no burst is at the boundary of an interval
	err = s.send(f.Rate, counting.FlushInterval)
	s.publisher.Close()
	aggregator.Stop()
	if stats := publishers.Stats(); stats.DroppedTotal() > 0 {
		err = errors.Join(err, fmt.Errorf("send spans: %v were dropped", stats.Dropped))
	}
	return s.kept(f), err
}

// send publishes in bursts, at a rate per second.
func (s *sender) send(rate int, interval time.Duration) error {
	bursts := int(interval / pause)
	for s.interval = range intervals {
		for burst := range bursts {
			spans := rate * int(interval/time.Second)
			for n := spans*(burst+1)/bursts - spans*burst/bursts; n > 0; n -= batchSpans {
				if err := s.publish(min(n, batchSpans)); err != nil {
					return err
				}
			}
			time.Sleep(pause)
		}
	}
	return nil
}

// publish publishes one batch.
func (s *sender) publish(spans int) error {
	batch := s.batch[:spans]
	s.generator.Fill(batch, time.Now().UnixNano())
	s.body = wire.BeginSpans(s.body[:0])
	for i := range batch {
		one := &batch[i]
		if number := s.numberOf(one.Key); number >= 0 {
			s.came[s.interval][number]++
		}
		s.key = wire.AppendKey(s.key[:0], one.Key)
		if !s.numbered {
			s.body = wire.AppendWhole(s.body, s.key, one.Duration, one.End, one.Flags, 1)
			continue
		}
		if err := s.publisher.Define(uint32(i), s.key); err != nil {
			return fmt.Errorf("define key: %w", err)
		}
		s.body = wire.AppendNumbered(s.body, uint32(i), one.Duration, one.End, one.Flags, 1)
	}
	wire.EndSpans(s.body, 0, len(batch))
	_, body, err := wire.Split(s.body[wire.HeaderLen:])
	if err == nil {
		err = s.publisher.Publish(body)
	}
	if err != nil {
		return fmt.Errorf("publish batch: %w", err)
	}
	return nil
}

// numberOf returns the number of a regular key, or -1 for other keys. The cache by address
// works because the generator does not reuse the memory of a flood's key for a regular key.
func (s *sender) numberOf(k *span.Key) int {
	number, met := s.numbers[k]
	if !met {
		var is bool
		if number, is = s.honest[string(wire.AppendKey(nil, k))]; !is {
			number = -1
		}
		s.numbers[k] = number
	}
	return number
}

// deliver records the rows of a finished interval. It is called before the next burst.
func (s *sender) deliver(sealed *aggregate.Sealed) {
	if s.delivered < intervals {
		for part := range sealed.Parts {
			if at, is := s.honest[string(wire.AppendKey(nil, &sealed.Keys[part.Key].Key))]; is {
				s.rows[s.delivered][at] += int64(part.Counts().Spans)
			}
		}
	}
	s.delivered++
	sealed.Delivery.Resolve(nil)
	sealed.Release()
}

func (s *sender) kept(f flooding) kept {
	k := kept{flooding: f}
	for number := range workload.HonestKeys {
		often, always := true, true
		for i := range intervals {
			often = often && s.came[i][number] >= oftenEnough
			always = always && s.rows[i][number] > 0
		}
		if often {
			k.Often++
			if always {
				k.Always++
			}
		}
	}
	return k
}
