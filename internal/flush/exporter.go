package flush

import (
	"context"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// Exporter is what a kind of destination has of its own: how statistics are encoded
// for it, and how it is spoken to. All else (what waits, who goes when, what is given
// up, the books) a Destination does alike for each.
type Exporter interface {
	// Name is the destination's in metrics, the log and status. It does not change.
	Name() string

	// URL is where the destination is, for a person. It does not change.
	URL() string

	// Encode makes payloads of a sealed cycle's rows, none longer than limit, and
	// hands each to emit as soon as it is made, so that not all need memory at once.
	// It returns what else is to be said. The goroutine that seals calls it, so
	// it computes and waits for nobody; it only reads, and keeps nothing of sealed and
	// rows but their texts.
	Encode(sealed *aggregate.Sealed, rows []Row, limit int, emit func(*Payload)) Encoded

	// Deliver offers the destination a payload once. Several calls may be under way,
	// of payloads of different origins, unless it is in order; each ends soon after its
	// context.
	Deliver(ctx context.Context, p *Payload) Attempt
}

// What only some destinations need is an interface of its own, of an Exporter that has it.
// Their answers do not change, but those of Wants and Joined.
type (
	// inOrder has payloads go one at a time, each when the one before has its outcome,
	// because the destination takes nothing that is older than what it has.
	inOrder interface{ InOrder() bool }

	// sendsTotals says that payloads have running totals: all that was counted since a
	// series began. Then the payloads of a cycle say all that those of earlier ones did,
	// cycles without spans have payloads too, because a reader forgets what it is not told
	// of, and a second copy changes nothing. It needs inOrder.
	sendsTotals interface{ SendsTotals() bool }

	// countsByBounds has histograms with classic buckets, of these upper bounds in seconds.
	// sketch.CheckBounds accepts them, and those of all destinations together.
	countsByBounds interface{ Bounds() []float64 }

	// wants says whether the destination wants statistics at present, and the longest
	// payload that it takes, 0 where it did not say. Any goroutine may ask.
	wants interface {
		Wants() (statistics bool, payloadBytes int)
	}

	// joins says whether a destination that nobody named is found. Until then it is none: nothing is
	// held for it. Once found it stays one, whatever becomes of it. Any goroutine may ask.
	joins interface{ Joined() bool }

	// isFetched publishes what it encodes, for whoever comes for it: a payload is flushed once it
	// is made. What is read of it the exporter tells Unread, always the same.
	isFetched interface{ Unread() *Unread }

	// watches asks the destination what it wants, and how it does, where no payload
	// tells. It has a goroutine until its context ends.
	watches interface {
		Watch(ctx context.Context, link *Link)
	}
)

// SendsTotals says whether an exporter sends running totals.
func SendsTotals(x Exporter) bool {
	optional, is := x.(sendsTotals)
	return is && optional.SendsTotals()
}

// Bounds are those of an exporter's classic buckets, or none.
func Bounds(x Exporter) []float64 {
	if optional, is := x.(countsByBounds); is {
		return optional.Bounds()
	}
	return nil
}

func isInOrder(x Exporter) bool {
	optional, is := x.(inOrder)
	return is && optional.InOrder()
}

func hasJoined(x Exporter) bool {
	optional, is := x.(joins)
	return !is || optional.Joined()
}

func unreadOf(x Exporter) *Unread {
	if optional, is := x.(isFetched); is {
		return optional.Unread()
	}
	return nil
}

func whatItWants(x Exporter) (statistics bool, payloadBytes int) {
	if optional, is := x.(wants); is {
		return optional.Wants()
	}
	return true, 0
}

// Encoded is what there is to say of an encoded cycle beside its payloads.
type Encoded struct {
	Lost   map[Reason]uint64 // spans that will be in no payload
	Totals TotalsStats       // of an exporter that sends totals
}

// TotalsStats is how many running totals an exporter has and had.
type TotalsStats struct {
	Series     int    // at present
	Ended      uint64 // series
	Overflowed uint64 // spans that found no room in a series of their own
}
