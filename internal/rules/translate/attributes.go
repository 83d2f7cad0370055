package translate

import (
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/work"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// spanAttributes finds the attributes of a span and its resource, and makes texts of them.
type spanAttributes struct {
	request *otlp.Request
	to      *spantable.Table // with the body of the request, so a text of that is one of this
	span    spantable.Selected
	process spantable.Selected // its resource
	either  spantable.LabelSet // what one of both has
	scratch []byte             // texts that nothing is made of but a name
}

// selectProcess selects a resource, and no span.
func (a *spanAttributes) selectProcess(of *otlp.Resource) {
	a.process.Set = spantable.LabelSet{}
	a.process.AddMissing(&a.request.Table, of.FirstTag, of.LastTag)
	a.span.Set, a.either = spantable.LabelSet{}, a.process.Set
}

// selectSpan selects a span of the selected resource.
func (a *spanAttributes) selectSpan(s *spantable.Span) {
	a.span.Set, a.scratch = spantable.LabelSet{}, a.scratch[:0]
	a.span.AddMissing(&a.request.Table, s.First, s.Last)
	for i := range a.either {
		a.either[i] = a.span.Set[i] | a.process.Set[i]
	}
}

// text is an attribute that the span, or else its resource, has as a text that is not empty.
func (a *spanAttributes) text(l spantable.Label) spantable.Text {
	if !a.either.Has(l) {
		return spantable.Text{}
	}
	return a.found(l)
}

func (a *spanAttributes) found(l spantable.Label) spantable.Text {
	for _, s := range [...]*spantable.Selected{&a.span, &a.process} {
		if t := s.Tag(&a.request.Table, l); t != nil && t.Value == spantable.IsText && t.Text().Len > 0 {
			return t.Text()
		}
	}
	return spantable.Text{}
}

// first is the first of two attributes that is such a text.
func (a *spanAttributes) first(l, or spantable.Label) spantable.Text {
	if text := a.text(l); text.Len > 0 {
		return text
	}
	return a.text(or)
}

// integer is an attribute that the span, or else its resource, has as an integer.
func (a *spanAttributes) integer(l spantable.Label) (int64, bool) {
	for _, s := range [...]*spantable.Selected{&a.span, &a.process} {
		if t := s.Tag(&a.request.Table, l); t != nil && t.Value == spantable.IsInteger {
			return int64(t.Bits), true
		}
	}
	return 0, false
}

// resourceTag returns an attribute of the resource, of any type, as the value of a tag.
func (a *spanAttributes) resourceTag(l spantable.Label) spantable.Text {
	t := a.process.Tag(&a.request.Table, l)
	if t == nil {
		return spantable.Text{}
	}
	return a.normal(a.asText(t))
}

// Value implements work.Span. It returns an attribute as the value of a tag, except for a method, of which package
// work asks only whether there is one. It is valid until the next span.
func (a *spanAttributes) Value(attribute work.Attribute) string {
	text := a.to.Bytes(a.first(workAttributes[attribute][0], workAttributes[attribute][1]))
	if attribute == work.HTTPMethod || rules.IsTagValue(text) {
		return spantable.View(text)
	}
	start := len(a.scratch)
	a.scratch = rules.AppendTagValue(a.scratch, spantable.View(text))
	return spantable.View(a.scratch[start:])
}

// asText returns an attribute as text.
func (a *spanAttributes) asText(t *spantable.Tag) spantable.Text {
	if t.Value == spantable.IsText {
		return t.Text()
	}
	start := len(a.to.Derived)
	a.to.Derived = a.request.AppendValue(a.to.Derived, t)
	return a.to.DerivedSince(start)
}

// normal is a text as the value of a tag, which most are as they are.
func (a *spanAttributes) normal(text spantable.Text) spantable.Text {
	if rules.IsTagValue(a.to.Bytes(text)) {
		return text
	}
	start := len(a.to.Derived)
	a.to.Derived = rules.AppendTagValue(a.to.Derived, a.to.String(text))
	return a.to.DerivedSince(start)
}

// join is a text of several parts.
func (a *spanAttributes) join(all ...string) spantable.Text {
	start := len(a.to.Derived)
	for _, part := range all {
		a.to.Derived = append(a.to.Derived, part...)
	}
	return a.to.DerivedSince(start)
}

// decimal is an integer as a text.
func (a *spanAttributes) decimal(n int64) spantable.Text {
	start := len(a.to.Derived)
	a.to.Derived = strconv.AppendInt(a.to.Derived, n, 10)
	return a.to.DerivedSince(start)
}

// naming is what spans are called.
type naming struct{ spanAttributes }

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
	start := len(n.to.Derived)
	n.to.Derived = work.AppendOperation(n.to.Derived, n, kind)
	return n.to.DerivedSince(start)
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

// sender is what the selected resource says of its process.
func (a *spanAttributes) sender() spantable.Sender {
	return spantable.Sender{
		Lang:          a.resourceTag(attrLanguage),
		TracerVersion: a.join(span.OTLPVersion, a.to.String(a.resourceTag(attrSDKVersion))),
		Container:     a.normal(a.text(attrContainer)),
		Host:          a.host(),
		Env:           a.normal(a.first(attrEnvironment, attrOldEnvironment)),
	}
}

// hostless are platforms whose processes run on no host, as far as anybody is told.
var hostless = map[string]bool{
	"gcp_cloud_functions": true, "gcp_cloud_run": true, "azure_functions": true, "azure.functions": true,
	"azure_app_service": true, "azure.app_service": true,
	"azure_container_apps": true, "azure.container_apps": true,
}

// local are names that any host has.
var local = map[string]bool{
	"0.0.0.0": true, "127.0.0.1": true, "localhost": true, "localhost.localdomain": true,
	"localhost6.localdomain6": true, "ip6-localhost": true,
}

// host is the name of the resource's host as the ingest finds it, empty where the agent takes
// its own: it knows that one.
func (a *spanAttributes) host() spantable.Text {
	if name := a.anyHost(); !local[a.to.String(name)] {
		return name
	}
	return spantable.Text{}
}

func (a *spanAttributes) anyHost() spantable.Text {
	says := func(l spantable.Label) string { return a.to.String(a.text(l)) }
	first := func(labels ...spantable.Label) spantable.Text {
		for _, l := range labels {
			if a.process.Set.Has(l) {
				return a.text(l)
			}
		}
		return spantable.Text{}
	}
	switch provider := says(attrCloud); {
	case hostless[says(attrPlatform)]:
		return spantable.Text{}
	case a.process.Set.Has(attrHost):
		return a.asText(a.process.Tag(&a.request.Table, attrHost)) // of any type
	case a.process.Set.Has(attrDatadogHost):
		return a.text(attrDatadogHost)
	case says(attrLaunchType) == "fargate":
		return spantable.Text{}
	case provider == "aws":
		return first(attrHostID)
	case provider == "gcp":
		return a.hostOfGCP()
	case provider == "azure" || !a.process.Set.Has(attrNode):
		return first(attrHostID, attrHostName)
	case a.process.Set.Has(attrCluster):
		return a.join(says(attrNode), "-", says(attrCluster))
	}
	return a.text(attrNode)
}

// hostOfGCP is the name of a host there: that of the machine, without its domain, and its
// project.
func (a *spanAttributes) hostOfGCP() spantable.Text {
	if !a.process.Set.Has(attrHostName) || !a.process.Set.Has(attrAccount) {
		return spantable.Text{}
	}
	name := a.to.String(a.text(attrHostName))
	if strings.Count(name, ".") >= 3 {
		name, _, _ = strings.Cut(name, ".")
	}
	return a.join(name, ".", a.to.String(a.text(attrAccount)))
}
