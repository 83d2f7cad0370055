package doctor

import (
	"maps"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/health"
)

func (f *Findings) doors(s *health.Status) {
	f.socket(s)
	for _, name := range slices.Sorted(maps.Keys(s.Doors)) {
		f.door(name, s.Doors[name], s.At)
	}
}

// socket is our own door.
func (f *Findings) socket(s *health.Status) {
	const about = "door socket"
	switch c := &s.Connections; {
	case c.Total > 0:
		f.ok(about, "%d clients are connected, %d were in all", c.Live, c.Total)
	case len(s.Doors) > 0:
		f.ok(about, "no client of the socket has connected; other doors are open")
	default:
		f.add(Notice, about, "mount the directory of "+setting(s, "socket")+" into the application's "+
			"container; for tracers and SDKs as they are open a door: --apm-socket, --otlp-addr",
			"no client has connected, and no other door is open")
	}
	f.reasons(Wrong, about, s.Connections.Faults, map[string]string{
		"too_many_connections": "raise --max-connections",
		"not_allowed":          "name the client's user in --allow-uid",
		"bad_frame":            clientMend, "bad_message": clientMend,
		"half_frame": "a client died, or was cut off",
		"no_hello":   clientMend, "too_large": clientMend, "version": "update the client, or the daemon",
		"too_slow": "a client stopped in the middle of a message: it may be out of CPU",
		"bug":      requestMends["bug"],
	}, "%d connections were closed: %s")
}

func (f *Findings) door(name string, d *health.OnwardDoor, now time.Time) {
	about := "door " + name
	switch {
	case d.LastHeard.IsZero() && d.Connections.Live == 0:
		f.add(Notice, about, "point the sender's endpoint at --"+name+"-addr or --"+name+"-socket",
			"it is open, and nobody has sent %s", d.Brings)
	default:
		f.ok(about, "%d connections, %d requests counted, heard %.0f s ago", d.Connections.Live,
			d.Requests["counted"], now.Sub(d.LastHeard).Seconds())
	}
	if d.Refused > 0 {
		f.add(Wrong, about, "raise --"+name+"-max-connections", "%d connections found no room", d.Refused)
	}
	if name == "apm" {
		f.reasons(Notice, about, d.Requests, requestMends, "%d requests were left to the agent to count: %s")
	} else {
		f.reasons(Wrong, about, d.Requests, requestMends, "%d requests were not counted: %s")
	}
	if on := d.Forward; on != nil {
		f.state(about+" forward", on.URL, string(on.State), on.Said)
	}
}
