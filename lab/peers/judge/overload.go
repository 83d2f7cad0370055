package main

import (
	"sync"
	"time"
)

// overload measures how many spans per second the tool accepts, and then sends twice as many.
func (t *trial) overload() {
	const senders = 8
	var sending sync.WaitGroup
	end := time.Now().Add(t.lasts.measure)
	for range senders {
		sending.Go(func() {
			for time.Now().Before(end) {
				t.send(t.nextRequest(), false)
				t.sender.throttle()
			}
		})
	}
	sending.Wait()
	capacity := float64(t.accepted.Load()) / t.lasts.measure.Seconds() // spans per second
	interval := time.Duration(float64(t.scenario.spansPerRequest) / (2 * capacity) * float64(time.Second))
	t.sendEvery(interval, t.lasts.traffic)
}
