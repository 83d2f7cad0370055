package rules

import (
	"iter"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// CommonOrigin is the number of the common origin, which describes the processes that have no other origin.
const CommonOrigin = MaxOrigins

// AssignedOrigin is the origin under which the spans of a sender, the process that sent them, are counted.
type AssignedOrigin struct {
	Number   uint8 // number of the origin; see Origins.Get
	IsShared bool  // the origin is less specific than the sender, because there were too many senders
}

// Origins numbers the origins of one body, the descriptions of the processes that sent its spans. If
// there are more than MaxOrigins different ones, some processes share an origin of their service, and
// the others share the common origin.
type Origins struct {
	list      []span.Origin // index is the origin's number; excludes the common origin
	common    span.Origin
	hasCommon bool // the common origin is in use
}

// AssignOrigins assigns an origin to each sender, a process that sent spans, and appends the assigned origins
// to dst. Up to MaxOrigins different senders get an origin of their own. If there are more, some
// share an origin that describes only what they have in common. AssignOrigins iterates over senders up to
// three times.
func (o *Origins) AssignOrigins(dst []AssignedOrigin, senders iter.Seq[span.Origin]) []AssignedOrigin {
	o.Reset()
	assigned, hasTooMany := o.assign(dst, senders, MaxOrigins)
	if !hasTooMany {
		return assigned
	}
	// Reserve an origin for each service, but at most half of all origins, so that some senders still
	// get an origin of their own.
	reserved := min(countServices(senders), MaxOrigins/2)
	maxOwned := MaxOrigins - reserved
	o.Reset()
	assigned, _ = o.assign(dst, senders, maxOwned)
	return assigned
}

// countServices returns the number of different services among senders, at most MaxOrigins.
func countServices(senders iter.Seq[span.Origin]) int {
	services := make([]span.Origin, 0, MaxOrigins)
	for sender := range senders {
		service := sender.ServiceOnly()
		if slices.Contains(services, service) {
			continue
		}
		services = append(services, service)
		if len(services) == MaxOrigins {
			break
		}
	}
	return len(services)
}

// assign assigns an origin to each sender, and appends the assigned origins to dst. The first maxOwned different senders
// get an origin of their own. The others share the origin of their service, or the common origin if there are already
// MaxOrigins origins. hasTooMany reports whether there are more than maxOwned different senders.
func (o *Origins) assign(dst []AssignedOrigin, senders iter.Seq[span.Origin], maxOwned int) (assigned []AssignedOrigin, hasTooMany bool) {
	assigned = dst
	for sender := range senders {
		number := slices.Index(o.list, sender)
		isListed := number >= 0
		switch {
		case isListed: // number is that of the sender's own origin
		case len(o.list) < maxOwned:
			number = o.add(sender)
		default:
			number = o.findOrAddService(sender)
			hasTooMany = true
		}
		isShared := o.Get(number) != sender // the origin describes only a part of the sender
		assigned = append(assigned, AssignedOrigin{Number: uint8(number), IsShared: isShared})
	}
	return assigned, hasTooMany
}

// findOrAddService returns the number of the origin for the service of sender. Senders of the service share this
// origin, which describes only the service. findOrAddService adds the origin if it does not exist. If there are already
// MaxOrigins origins, it returns the number of the common origin instead.
func (o *Origins) findOrAddService(sender span.Origin) int {
	service := sender.ServiceOnly()
	if number := slices.Index(o.list, service); number >= 0 {
		return number
	}
	if len(o.list) < MaxOrigins {
		return o.add(service)
	}
	return o.MergeIntoCommon(service)
}

// add appends an origin and returns its number.
func (o *Origins) add(origin span.Origin) int {
	o.list = append(o.list, origin)
	return len(o.list) - 1
}

// MergeIntoCommon adds process to the processes that the common origin describes, and returns CommonOrigin, the number
// of this origin. The common origin has no service. It has an environment or a language only if all its processes have
// the same one.
func (o *Origins) MergeIntoCommon(process span.Origin) int {
	description := process.ServiceOnly()
	description.Service = "" // its processes belong to different services
	if !o.hasCommon {
		o.common = description
		o.hasCommon = true
		return CommonOrigin
	}
	o.common = o.common.Common(description) // keeps only equal fields
	return CommonOrigin
}

// Get returns the origin with the given number. The result remains valid after Reset.
func (o *Origins) Get(number int) span.Origin {
	if number == CommonOrigin {
		return o.common
	}
	return o.list[number]
}

// Reset removes all origins.
func (o *Origins) Reset() {
	clear(o.list)
	o.list = o.list[:0]
	o.common = span.Origin{}
	o.hasCommon = false
}
