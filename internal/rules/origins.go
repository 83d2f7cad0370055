package rules

import (
	"iter"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Common is the number of the common origin: that of spans which have no other.
const Common = MaxOrigins

// Place is the origin that the spans of a sender are counted under.
type Place struct {
	Number   uint8 // see Origins.Of
	IsShared bool  // the origin says less than the sender does, because there was no room for that
}

// Origins numbers the origins of one body. Any number of senders is placed: if they are more than
// MaxOrigins different ones, some share the origin of their service, and the rest the common origin.
type Origins struct {
	list   []span.Origin // by number, without the common one
	common span.Origin
	spilt  bool // something has the common origin
}

// Place appends the place of each sender. It may visit the senders three times.
func (o *Origins) Place(places []Place, senders iter.Seq[span.Origin]) []Place {
	o.Reset()
	if all, ok := o.place(places, senders, MaxOrigins); ok {
		return all
	}
	// Half of the places are for services at most, so that a body of many services does not lose
	// what all of them say besides.
	services := o.services(senders)
	o.Reset()
	all, _ := o.place(places, senders, max(MaxOrigins-services, MaxOrigins/2))
	return all
}

// services is how many services the senders are of, MaxOrigins at most.
func (o *Origins) services(senders iter.Seq[span.Origin]) int {
	o.Reset()
	for sender := range senders {
		of := sender.ServiceOnly()
		if len(o.list) < MaxOrigins && !slices.Contains(o.list, of) {
			o.list = append(o.list, of)
		}
	}
	return len(o.list)
}

// place gives the first senders that differ an origin of their own, up to that number. It reports
// false if all places could be their own, and were too few.
func (o *Origins) place(places []Place, senders iter.Seq[span.Origin], own int) (all []Place, ok bool) {
	all = places
	owned := 0
	for sender := range senders {
		number := slices.Index(o.list, sender)
		switch {
		case number >= 0:
		case owned < own:
			owned++
			number = o.add(sender)
		case own == MaxOrigins:
			return places, false
		default:
			number = o.share(sender)
		}
		all = append(all, Place{uint8(number), o.Of(number) != sender})
	}
	return all, true
}

// share is the number of the sender's service, or the common one if there is no room for that.
func (o *Origins) share(sender span.Origin) int {
	of := sender.ServiceOnly()
	if number := slices.Index(o.list, of); number >= 0 {
		return number
	}
	if len(o.list) < MaxOrigins {
		return o.add(of)
	}
	return o.Spill(of)
}

func (o *Origins) add(origin span.Origin) int {
	o.list = append(o.list, origin)
	return len(o.list) - 1
}

// Spill makes the common origin that of one more, and returns its number. It names no service, so
// that spans keep their own.
func (o *Origins) Spill(origin span.Origin) int {
	origin = origin.ServiceOnly()
	if origin.Service = ""; o.spilt {
		origin = o.common.Common(origin)
	}
	o.common, o.spilt = origin, true
	return Common
}

// Of is the origin of a number. It may be kept.
func (o *Origins) Of(number int) span.Origin {
	if number == Common {
		return o.common
	}
	return o.list[number]
}

// Reset forgets all of them.
func (o *Origins) Reset() {
	clear(o.list)
	o.list, o.common, o.spilt = o.list[:0], span.Origin{}, false
}
