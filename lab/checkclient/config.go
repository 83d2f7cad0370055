package checkclient

import (
	"io"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Config selects what is reported, and how. Every field must be set.
type Config struct {
	Out       io.Writer
	JSON      bool // print one JSON object per line
	Quiet     bool // print only malformed messages and the end of each connection
	PerSecond int  // limit on printed messages per second
	Dies      bool // simulate a crash during the first connection; later connections are treated as reconnects
	Now       func() time.Time
	Version   string        // daemon version in the welcome message
	Features  wire.Features // daemon features in the welcome message
	Interval  time.Duration // flush interval in the welcome message
}
