package client

// Stats is what a client has done since it was opened, in spans. At any moment
//
//	offered   = Published + sum of Refused
//	Published = Sent + Buffered + sum of Lost
//
// where offered is what Publish was called with.
type Stats struct {
	Published uint64            // accepted by Publish
	Refused   map[string]uint64 // not accepted by Publish, by reason
	Sent      uint64            // of which the socket took every byte
	Buffered  uint64            // accepted, and neither sent nor lost yet
	Lost      map[string]uint64 // accepted, and lost, by reason

	// Unconfirmed is how many of Sent were handed over to a daemon that died before it
	// said what became of them: so many at most are lost.
	Unconfirmed uint64

	Connects  uint64 // how often a daemon has welcomed this client
	Connected bool
	Daemon    string // what the daemon calls itself, while connected
}

// Stats may be asked at any time, also after Close.
func (c *Client) Stats() Stats {
	// The spans that have left are read before the spans that have come. So a span that passes
	// through meanwhile counts as buffered, and the number of buffered spans is never
	// negative.
	stats := Stats{Sent: c.sent.Load()}
	var lost [reasons]uint64
	c.lost.addTo(&lost)
	stats.Lost = named(lost)
	stats.Refused = named(c.refused())
	for i := range c.shards {
		stats.Published += c.shards[i].published.Load()
	}
	stats.Buffered = stats.Published - stats.Sent
	for _, n := range lost {
		stats.Buffered -= n
	}
	stats.Unconfirmed = c.unconfirmed.Load()
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
