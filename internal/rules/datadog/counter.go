package datadog

import (
	"time"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Counter turns bodies into batches of snapshots.
type Counter struct {
	// Now is the clock. Only spans without a start ask for it.
	Now func() time.Time

	labeller
	decoder decode.Decoder
	decoded spantable.Table
	links   []agent.Link
	spans   agent.Spans
	batches rules.Batches
	origins rules.Origins // of the senders, where the body has several
	senders []rules.Place // by sender

	// Of the body that is being counted.
	counts spantable.KindSet // for their kind alone
	tracer bool              // its tracer marked top-level spans itself
	kept   []Kept

	// Of the trace that is being counted.
	batch  int        // its number
	shared span.Flags // whether it shares its origin
	weight float64
	keeps  bool // its spans are noted in kept
	group  int  // its number in the table
}

// Kept is a counted span of a trace that sampling keeps for certain: when the agent has taken the
// body, the backend will have it, and somebody can look at it there. Of a trace that has no
// priority the agent decides, and of what it rejects the agent may keep what has an error, or may
// not. An agent that samples by trace ids whatever tracers say keeps less.
type Kept struct {
	Batch, At   int32 // which of Batches it is in, and which of its spans it is
	span, group int32
}
