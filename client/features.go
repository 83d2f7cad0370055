package client

import (
	"reflect"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Features is what the agent behind the daemon wants counted: whether stats at
// all, which peer tags, which span kinds, which resources not.
type Features = wire.Features

// Features returns what the daemon said last. Before it said anything stats are
// wanted and the lists are empty. The lists are shared: do not change them.
func (c *Client) Features() Features { return *c.features.Load() }

// FeatureChanges receives when Features has changed since the last receive.
// There is one channel a client, with room for one notice.
func (c *Client) FeatureChanges() <-chan struct{} { return c.featureChanges }

// setFeatures is called by whoever reads from the daemon, one at a time.
func (c *Client) setFeatures(f Features) {
	c.gate.want(f.Stats)
	if reflect.DeepEqual(f, c.Features()) {
		return
	}
	c.features.Store(&f)
	select {
	case c.featureChanges <- struct{}{}:
	default:
	}
}
