package checkclient

import (
	"io"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Config says what is told, and how. Every field must be set.
type Config struct {
	Out       io.Writer
	JSON      bool // one object a line
	Quiet     bool // only what is malformed, and the end of each connection
	PerSecond int  // messages that are printed
	Dies      bool // once, under the first connection, which is then of one that comes again
	Now       func() time.Time
	Version   string        // of the daemon, for the welcome
	Features  wire.Features // likewise
	Interval  time.Duration // likewise
}
