package daemon

import (
	"errors"
	"fmt"
	"net"

	"github.com/prometheus/exporter-toolkit/web"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/apm"
	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// Check says everything that is unusable, one reason a line, and makes nothing:
// no socket, no port, no ring. What only a start can find out (a path that may
// not be written, an address in use) it does not see.
func (c Config) Check() error {
	counting := c.Aggregate
	counting.Deliver = func(*aggregate.Sealed) {} // who makes a daemon sets it
	return errors.Join(
		c.Ingest.Check(), c.Admit.Check(), counting.Check(), ring.CheckSlots(counting.RingSlots), c.Flush.Check(),
		c.checkBatch(), c.checkGrace(), c.checkHTTP(), c.checkMemory(), c.checkAPM(),
	)
}

func (c *Config) checkGrace() error {
	if c.ShutdownGrace <= 0 {
		return errors.New("check shutdown-grace: it is not positive; give the last report some time, such as 5s")
	}
	return nil
}

func (c *Config) checkBatch() error {
	if c.Admit.MaxBatch > c.Aggregate.RingSlots {
		return errors.New("check max-batch: it is larger than a ring, so the largest batches could never be admitted; lower it or raise --ring-slots")
	}
	return nil
}

func (c *Config) checkAPM() error {
	traces := c.APM
	if !traces.Enabled() {
		return nil
	}
	traces.Agent = apm.Agent{Network: c.Flush.Agent.Network, Address: c.Flush.Agent.Address}
	return traces.Check()
}

func (c *Config) checkHTTP() (err error) {
	if _, bad := net.ResolveTCPAddr("tcp", c.HTTPAddr); bad != nil {
		err = fmt.Errorf("check http-addr: %w; give host:port or :port", bad)
	}
	if bad := web.Validate(c.WebConfigFile); bad != nil {
		err = errors.Join(err, fmt.Errorf("check web-config-file: %w", bad))
	}
	return err
}
