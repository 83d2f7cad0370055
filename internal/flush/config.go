package flush

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Config is what a Flusher needs to know. A zero field takes its default. The bounds
// are of each destination.
type Config struct {
	Log *slog.Logger

	MaxPayloadBytes int           // one payload's body
	RetryBytes      int           // bodies of all payloads that wait
	RetryAge        time.Duration // how long a payload may wait
	Timeout         time.Duration // of one request
}

const (
	DefaultMaxPayloadBytes = 1 << 20
	DefaultRetryBytes      = 16 << 20
	DefaultRetryAge        = 2 * time.Minute
	DefaultTimeout         = 10 * time.Second

	// MinPayloadBytes leaves room for an origin and the largest group that normalized keys and two full
	// sketches can make, some 60 KB.
	MinPayloadBytes = 128 << 10
	// mostPayloadBytes is the longest payload that the agent reads.
	mostPayloadBytes = 25 << 20
	// maxWaiting limits the number of queued payloads.
	maxWaiting = 4096
)

// withDefaults sets defaults and checks the values.
func (c Config) withDefaults() (Config, error) {
	c.MaxPayloadBytes = cmp.Or(c.MaxPayloadBytes, DefaultMaxPayloadBytes)
	c.RetryBytes = cmp.Or(c.RetryBytes, DefaultRetryBytes)
	c.RetryAge = cmp.Or(c.RetryAge, DefaultRetryAge)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	var err error
	if c.RetryBytes < c.MaxPayloadBytes {
		err = fmt.Errorf("check retry-bytes: %s does not hold one payload; give at least %s",
			memory.SizeText(c.RetryBytes), memory.SizeText(c.MaxPayloadBytes))
	}
	if c.RetryAge < 0 || c.Timeout < 0 {
		err = errors.Join(err, fmt.Errorf("check retry-age and timeout: %s and %s must be positive",
			c.RetryAge, c.Timeout))
	}
	return c, errors.Join(err,
		check.AtMost("retry-bytes", c.RetryBytes, memory.MostBytes),
		check.Size("payload", c.MaxPayloadBytes, MinPayloadBytes, mostPayloadBytes),
	)
}

// Check returns everything that is unusable.
func (c Config) Check() error {
	_, err := c.withDefaults()
	return err
}
