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
