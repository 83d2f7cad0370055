package daemon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/health"
)

// ownDescriptors is what the process opens besides connections: its log, listeners and
// their locks, what the runtime waits with, and files while they are read; some twenty,
// and as many again.
const ownDescriptors = 40

// deliveryDescriptors are kept for what a destination is brought and asked, and for the
// names that lead to it.
const deliveryDescriptors = flush.MaxConnections + 2

// doorDescriptors are what a door opens besides connections: two listeners, and one connection too many.
const doorDescriptors = 3

// Descriptors is how many file descriptors the configuration may come to use. Each
// listener closes what is over its limit, so one more of each may be open for a moment.
func (c *Config) Descriptors() int {
	n := ownDescriptors + c.destinations()*deliveryDescriptors + health.MaxConnections + 1 +
		c.Ingest.MaxConnections + 1
	if c.PrometheusAddr != "" {
		n += health.MaxConnections + 1
	}
	for _, k := range doorKinds {
		if d := k.config(c); d.Enabled() {
			n += k.common(c).MaxConnections + d.Forwards() + doorDescriptors
		}
	}
	return n
}

// connectionLimits are the flags that bound connections of senders.
func (c *Config) connectionLimits() []string {
	names := []string{"max-connections"}
	for _, k := range doorKinds {
		if k.common(c).Enabled() {
			names = append(names, k.name+"-max-connections")
		}
	}
	return names
}

// leastConnections is where making limits smaller ends; Check then says what to do.
const leastConnections = 16

// FitDescriptors halves the limits of connections, the larger first, until the process may open
// as many files as all of them together need. A limit that is set by hand stays. It returns the
// names of those that it has changed.
func FitDescriptors(c *Config, limit uint64, byHand func(limit string) bool) (changed []string) {
	c.DescriptorLimit = limit
	names := slices.DeleteFunc(c.connectionLimits(), byHand)
	limits := c.limits()
	for limit > 0 && uint64(c.Descriptors()) > limit {
		largest := ""
		for _, name := range names {
			if *limits[name] > leastConnections && (largest == "" || *limits[name] > *limits[largest]) {
				largest = name
			}
		}
		if largest == "" {
			break
		}
		*limits[largest] = max(leastConnections, *limits[largest]/2)
		if !slices.Contains(changed, largest) {
			changed = append(changed, largest)
		}
	}
	return changed
}

// checkDescriptors refuses what would leave deliveries and probes none. A limit of 0 is
// one that nobody knows; a count that is too large to be added up its room refuses.
func (c *Config) checkDescriptors() error {
	need, limit := c.Descriptors(), c.DescriptorLimit
	if limit == 0 || need < 0 || uint64(need) <= limit {
		return nil
	}
	return fmt.Errorf("check descriptors: the connections that are allowed may need %d with what "+
		"deliveries and probes need, and the process may open %d; raise the limit (ulimit -n, LimitNOFILE) "+
		"or lower --%s", need, limit, strings.Join(c.connectionLimits(), " or --"))
}
