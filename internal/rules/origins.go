package rules

import (
	"iter"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Common is the number of the common origin, for spans without an origin of their own.
const Common = MaxOrigins

// Place is the origin under which the spans of a sender are counted.
type Place struct {
	Number   uint8 // see Origins.Of
	IsShared bool  // the origin is less specific than the sender, because there were too many senders
}

// Origins numbers the origins of one body. There may be any number of senders: if more than
// MaxOrigins of them differ, some share an origin of their service, and the rest share the common
// origin.
type Origins struct {
	list   []span.Origin // index is the origin's number; excludes the common origin
	common span.Origin
	spilt  bool // the common origin is in use
}

// Place appends the place of each sender to places. It may iterate over senders up to three times.
func (o *Origins) Place(places []Place, senders iter.Seq[span.Origin]) []Place {
	o.Reset()
	if placed, ok := o.place(places, senders, MaxOrigins); ok {
		return placed
	}
	// At most half of the origins are for services, so that senders of a body with many services
	// can still have an origin of their own.
	services := o.services(senders)
	o.Reset()
	placed, _ := o.place(places, senders, max(MaxOrigins-services, MaxOrigins/2))
	return placed
}

// services returns the number of different services of the senders, at most MaxOrigins.
func (o *Origins) services(senders iter.Seq[span.Origin]) int {
	o.Reset()
	for sender := range senders {
		service := sender.ServiceOnly()
		if len(o.list) < MaxOrigins && !slices.Contains(o.list, service) {
			o.list = append(o.list, service)
		}
	}
	return len(o.list)
}

// place appends the place of each sender to places. The first limit different senders get an origin
// of their own, the others share one. With a limit of MaxOrigins nothing can be shared: it reports
// false if that is too few.
func (o *Origins) place(places []Place, senders iter.Seq[span.Origin], limit int) (placed []Place, ok bool) {
	placed = places
	owned := 0
	for sender := range senders {
		number := slices.Index(o.list, sender)
		switch {
		case number >= 0:
		case owned < limit:
			owned++
			number = o.add(sender)
		case limit == MaxOrigins:
			return places, false
		default:
			number = o.share(sender)
		}
		placed = append(placed, Place{uint8(number), o.Of(number) != sender})
	}
	return placed, true
}

// share returns the number of the origin of the sender's service, or Common if there are too many.
func (o *Origins) share(sender span.Origin) int {
	service := sender.ServiceOnly()
	if number := slices.Index(o.list, service); number >= 0 {
		return number
	}
	if len(o.list) < MaxOrigins {
		return o.add(service)
	}
	return o.Spill(service)
}

// add appends an origin and returns its number.
func (o *Origins) add(origin span.Origin) int {
	o.list = append(o.list, origin)
	return len(o.list) - 1
}

// Spill merges an origin into the common origin, and returns Common. The common origin names no
// service, so that its spans keep theirs.
func (o *Origins) Spill(origin span.Origin) int {
	origin = origin.ServiceOnly()
	origin.Service = ""
	if o.spilt {
		origin = o.common.Common(origin)
	}
	o.common, o.spilt = origin, true
	return Common
}

// Of returns the origin with this number. The result stays valid.
func (o *Origins) Of(number int) span.Origin {
	if number == Common {
		return o.common
	}
	return o.list[number]
}

// Reset removes all origins.
func (o *Origins) Reset() {
	clear(o.list)
	o.list, o.common, o.spilt = o.list[:0], span.Origin{}, false
}
