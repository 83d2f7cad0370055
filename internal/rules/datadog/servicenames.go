package datadog

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// serviceNames remembers what became of service names that the agent rewrites, so that
// rewriting one again allocates nothing.
type serviceNames struct {
	lang  string
	known map[string]string
}

// maxNames bounds them. Somebody who makes up names gets each rewritten anew.
const maxNames = 1024

// reset keeps the names for the next tracer, if it speaks the same language: that
// is in the name of a service without one.
func (n *serviceNames) reset(lang string) {
	if n.known == nil || n.lang != lang {
		n.lang, n.known = lang, map[string]string{}
	}
}

// service is the name as the agent writes it. It is good for as long as the bytes
// are.
func (n *serviceNames) service(raw []byte) string {
	if span.IsServiceName(spantable.View(raw)) {
		return spantable.View(raw)
	}
	if name, ok := n.known[string(raw)]; ok {
		return name
	}
	name := span.ServiceName(spantable.View(raw), n.lang)
	if len(n.known) < maxNames && len(raw) <= span.MaxOriginField {
		name = strings.Clone(name) // which may be a part of them
		n.known[string(raw)] = name
	}
	return name
}

// peer is the name of another service, or of the process's own, "" where there
// is nothing to call it by.
func (n *serviceNames) peer(raw []byte) string {
	if len(raw) == 0 || span.IsServiceName(spantable.View(raw)) {
		return spantable.View(raw)
	}
	return span.PeerName(string(raw))
}
