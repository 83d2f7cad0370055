package translate

import (
	"github.com/spanstatsd/spanstatsd/internal/rules/work"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// naming is what spans are called.
type naming struct{ asked }

// names gives a span, which is selected, its names. Its Name is that of OTLP until then.
func (n *naming) names(s *spantable.Span) {
	s.Resource = n.resource(s)
	s.Service = n.service()
	s.Name = n.operation(s.Kind)
	s.Type = n.workType(s.Kind)
}

func (n *naming) service() spantable.Text {
	if service := n.text(attrService); service.Len > 0 {
		return service
	}
	return n.join("otlpresourcenoservicename")
}

func (n *naming) operation(kind spantable.Kind) spantable.Text {
	if name := n.normal(n.text(attrOperation)); name.Len > 0 {
		return name
	}
	start := len(n.to.Made)
	n.to.Made = work.AppendOperation(n.to.Made, n, kind)
	return n.to.MadeSince(start)
}

func (n *naming) workType(kind spantable.Kind) spantable.Text {
	if name := n.text(attrType); name.Len > 0 {
		return name
	}
	return n.join(work.Type(n, kind))
}

// maxResource is how much the ingest leaves of a resource.
const maxResource = 5000

// resource is what the span was about.
func (n *naming) resource(s *spantable.Span) spantable.Text {
	name := n.wholeResource(s)
	name.Len = min(name.Len, maxResource)
	return name
}

func (n *naming) wholeResource(s *spantable.Span) spantable.Text {
	if name := n.text(attrResource); name.Len > 0 {
		return name
	}
	if method := n.first(attrHTTPMethod, attrOldHTTPMethod); method.Len > 0 {
		if n.to.String(method) == "_OTHER" {
			method = n.join("HTTP")
		}
		switch s.Kind {
		case spantable.KindClient:
			return n.with(method, n.text(attrTemplate))
		case spantable.KindServer:
			return n.with(method, n.text(attrRoute))
		}
		return method
	}
	if done := n.text(attrMessagingOperation); done.Len > 0 {
		return n.with(done, n.first(attrDestination, attrDestinationName))
	}
	if method := n.text(attrRPCMethod); method.Len > 0 {
		return n.with(method, n.text(attrRPCService))
	}
	if query := n.text(attrGraphQLType); query.Len > 0 {
		return n.with(query, n.text(attrGraphQLName))
	}
	if n.first(attrDBSystem, attrOldDBSystem).Len > 0 {
		if statement := n.first(attrStatement, attrQuery); statement.Len > 0 {
			return statement
		}
	}
	return s.Name
}

// with is a text, and behind it another, where there is one.
func (n *naming) with(text, behind spantable.Text) spantable.Text {
	if behind.Len == 0 {
		return text
	}
	return n.join(n.to.String(text), " ", n.to.String(behind))
}
