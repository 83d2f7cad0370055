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

// spanAttributes reads the attributes of the selected span and its resource as texts and numbers.
type spanAttributes struct {
	request       *otlp.Request
	to            *spantable.Table   // new table; it shares the request's body, so texts of the request are valid in it
	span          spantable.Selected // attributes of the selected span
	resourceAttrs spantable.Selected // attributes of its resource
	either        spantable.LabelSet // labels that the span or the resource has
	scratch       []byte             // temporary texts of Value
}

// selectResource selects a resource, and no span.
func (a *spanAttributes) selectResource(r *otlp.Resource) {
	a.resourceAttrs.Set = spantable.LabelSet{}
	a.resourceAttrs.AddMissing(&a.request.Table, r.FirstTag, r.LastTag)
	a.span.Set, a.either = spantable.LabelSet{}, a.resourceAttrs.Set
}

// selectSpan selects a span of the selected resource.
func (a *spanAttributes) selectSpan(s *spantable.Span) {
	a.span.Set, a.scratch = spantable.LabelSet{}, a.scratch[:0]
	a.span.AddMissing(&a.request.Table, s.First, s.Last)
	for i := range a.either {
		a.either[i] = a.span.Set[i] | a.resourceAttrs.Set[i]
	}
}

// text returns the text of an attribute of the span, or of its resource if the span has none. Empty
// texts and values of other types are ignored.
func (a *spanAttributes) text(l spantable.Label) spantable.Text {
	if !a.either.Has(l) {
		return spantable.Text{}
	}
	return a.findText(l)
}

// findText is the part of text that is not inlined.
func (a *spanAttributes) findText(l spantable.Label) spantable.Text {
	for _, s := range [...]*spantable.Selected{&a.span, &a.resourceAttrs} {
		if t := s.Tag(&a.request.Table, l); t != nil && t.Value == spantable.IsText && t.Text().Len > 0 {
			return t.Text()
		}
	}
	return spantable.Text{}
}

// first returns the text of l, or of fallback if l has none, see text.
func (a *spanAttributes) first(l, fallback spantable.Label) spantable.Text {
	if text := a.text(l); text.Len > 0 {
		return text
	}
	return a.text(fallback)
}

// integer returns the integer of an attribute of the span, or of its resource if the span has none.
// Values of other types are ignored.
func (a *spanAttributes) integer(l spantable.Label) (int64, bool) {
	for _, s := range [...]*spantable.Selected{&a.span, &a.resourceAttrs} {
		if t := s.Tag(&a.request.Table, l); t != nil && t.Value == spantable.IsInteger {
			return int64(t.Bits), true
		}
	}
	return 0, false
}

// resourceTag returns an attribute of the resource, of any type, normalized as a tag value.
func (a *spanAttributes) resourceTag(l spantable.Label) spantable.Text {
	t := a.resourceAttrs.Tag(&a.request.Table, l)
	if t == nil {
		return spantable.Text{}
	}
	return a.normal(a.asText(t))
}

// Value implements work.Span. It returns the text of an attribute, normalized as a tag value. The
// HTTP method is not normalized, because package work only tests whether it is empty. The result is
// valid until the next span.
func (a *spanAttributes) Value(attribute work.Attribute) string {
	text := a.to.Bytes(a.first(workAttributes[attribute][0], workAttributes[attribute][1]))
	if attribute == work.HTTPMethod || rules.IsTagValue(text) {
		return spantable.View(text)
	}
	start := len(a.scratch)
	a.scratch = rules.AppendTagValue(a.scratch, spantable.View(text))
	return spantable.View(a.scratch[start:])
}

// asText returns the value of an attribute, of any type, as text.
func (a *spanAttributes) asText(t *spantable.Tag) spantable.Text {
	if t.Value == spantable.IsText {
		return t.Text()
	}
	start := len(a.to.Derived)
	a.to.Derived = a.request.AppendValue(a.to.Derived, t)
	return a.to.DerivedSince(start)
}

// normal returns text normalized as a tag value.
func (a *spanAttributes) normal(text spantable.Text) spantable.Text {
	if rules.IsTagValue(a.to.Bytes(text)) {
		return text
	}
	start := len(a.to.Derived)
	a.to.Derived = rules.AppendTagValue(a.to.Derived, a.to.String(text))
	return a.to.DerivedSince(start)
}

// join returns the concatenation of parts.
func (a *spanAttributes) join(parts ...string) spantable.Text {
	start := len(a.to.Derived)
	for _, part := range parts {
		a.to.Derived = append(a.to.Derived, part...)
	}
	return a.to.DerivedSince(start)
}

// decimal returns n as decimal text.
func (a *spanAttributes) decimal(n int64) spantable.Text {
	start := len(a.to.Derived)
	a.to.Derived = strconv.AppendInt(a.to.Derived, n, 10)
	return a.to.DerivedSince(start)
}

// naming derives the names of the selected span.
type naming struct{ spanAttributes }

// names sets the resource, service, name and type of the selected span. Before that, s.Name must be
// the name of the OTLP span.
func (n *naming) names(s *spantable.Span) {
	s.Resource = n.resource(s)
	s.Service = n.service()
	s.Name = n.operation(s.Kind)
	s.Type = n.workType(s.Kind)
}

// service returns the service, or the ingest's default.
func (n *naming) service() spantable.Text {
	if service := n.text(attrService); service.Len > 0 {
		return service
	}
	return n.join("otlpresourcenoservicename")
}

// operation returns the operation name: an explicit one, or the one that package work derives.
func (n *naming) operation(kind spantable.Kind) spantable.Text {
	if name := n.normal(n.text(attrOperation)); name.Len > 0 {
		return name
	}
	start := len(n.to.Derived)
	n.to.Derived = work.AppendOperation(n.to.Derived, n, kind)
	return n.to.DerivedSince(start)
}

// workType returns the span type: an explicit one, or the one that package work derives.
func (n *naming) workType(kind spantable.Kind) spantable.Text {
	if name := n.text(attrType); name.Len > 0 {
		return name
	}
	return n.join(work.Type(n, kind))
}

// maxResource is the length in bytes to which the ingest cuts a resource.
const maxResource = 5000

// resource returns the resource name, cut to maxResource.
func (n *naming) resource(s *spantable.Span) spantable.Text {
	name := n.fullResource(s)
	name.Len = min(name.Len, maxResource)
	return name
}

// fullResource returns the resource name: an explicit one, or the description of a request, message, call,
// query or statement. Otherwise it is the name of the OTLP span.
func (n *naming) fullResource(s *spantable.Span) spantable.Text {
	if name := n.text(attrResource); name.Len > 0 {
		return name
	}
	if method := n.first(attrHTTPMethod, attrOldHTTPMethod); method.Len > 0 {
		if n.to.String(method) == "_OTHER" {
			method = n.join("HTTP")
		}
		switch s.Kind {
		case spantable.KindClient:
			return n.joinNonEmpty(method, n.text(attrTemplate))
		case spantable.KindServer:
			return n.joinNonEmpty(method, n.text(attrRoute))
		}
		return method
	}
	if operation := n.text(attrMessagingOperation); operation.Len > 0 {
		return n.joinNonEmpty(operation, n.first(attrDestination, attrDestinationName))
	}
	if method := n.text(attrRPCMethod); method.Len > 0 {
		return n.joinNonEmpty(method, n.text(attrRPCService))
	}
	if query := n.text(attrGraphQLType); query.Len > 0 {
		return n.joinNonEmpty(query, n.text(attrGraphQLName))
	}
	if n.first(attrDBSystem, attrOldDBSystem).Len > 0 {
		if statement := n.first(attrStatement, attrQuery); statement.Len > 0 {
			return statement
		}
	}
	return s.Name
}

// joinNonEmpty returns text, followed by a space and suffix unless suffix is empty.
func (n *naming) joinNonEmpty(text, suffix spantable.Text) spantable.Text {
	if suffix.Len == 0 {
		return text
	}
	return n.join(n.to.String(text), " ", n.to.String(suffix))
}

// sender returns the sender that the selected resource describes.
func (a *spanAttributes) sender() spantable.Sender {
	return spantable.Sender{
		Lang:          a.resourceTag(attrLanguage),
		TracerVersion: a.join(span.OTLPVersion, a.to.String(a.resourceTag(attrSDKVersion))),
		Container:     a.normal(a.text(attrContainer)),
		Host:          a.host(),
		Env:           a.normal(a.first(attrEnvironment, attrOldEnvironment)),
	}
}

// hostless contains cloud platforms whose resources have no host name.
var hostless = map[string]bool{
	"gcp_cloud_functions": true, "gcp_cloud_run": true, "azure_functions": true, "azure.functions": true,
	"azure_app_service": true, "azure.app_service": true,
	"azure_container_apps": true, "azure.container_apps": true,
}

// local contains names that do not identify a host.
var local = map[string]bool{
	"0.0.0.0": true, "127.0.0.1": true, "localhost": true, "localhost.localdomain": true,
	"localhost6.localdomain6": true, "ip6-localhost": true,
}

// host returns the host name of the selected resource, as the ingest determines it. It is empty if
// the agent uses its own host name.
func (a *spanAttributes) host() spantable.Text {
	if name := a.hostAttribute(); !local[a.to.String(name)] {
		return name
	}
	return spantable.Text{}
}

// hostAttribute returns the host name from the attributes of the selected resource, in the order of the
// ingest.
func (a *spanAttributes) hostAttribute() spantable.Text {
	str := func(l spantable.Label) string { return a.to.String(a.text(l)) }
	first := func(labels ...spantable.Label) spantable.Text {
		for _, l := range labels {
			if a.resourceAttrs.Set.Has(l) {
				return a.text(l)
			}
		}
		return spantable.Text{}
	}
	switch provider := str(attrCloud); {
	case hostless[str(attrPlatform)]:
		return spantable.Text{}
	case a.resourceAttrs.Set.Has(attrHost):
		return a.asText(a.resourceAttrs.Tag(&a.request.Table, attrHost)) // of any type
	case a.resourceAttrs.Set.Has(attrDatadogHost):
		return a.text(attrDatadogHost)
	case str(attrLaunchType) == "fargate":
		return spantable.Text{}
	case provider == "aws":
		return first(attrHostID)
	case provider == "gcp":
		return a.hostOfGCP()
	case provider == "azure" || !a.resourceAttrs.Set.Has(attrNode):
		return first(attrHostID, attrHostName)
	case a.resourceAttrs.Set.Has(attrCluster):
		return a.join(str(attrNode), "-", str(attrCluster))
	}
	return a.text(attrNode)
}

// hostOfGCP returns the host name of a GCP resource: the name of the machine, without its domain,
// and the project.
func (a *spanAttributes) hostOfGCP() spantable.Text {
	if !a.resourceAttrs.Set.Has(attrHostName) || !a.resourceAttrs.Set.Has(attrAccount) {
		return spantable.Text{}
	}
	name := a.to.String(a.text(attrHostName))
	if strings.Count(name, ".") >= 3 {
		name, _, _ = strings.Cut(name, ".")
	}
	return a.join(name, ".", a.to.String(a.text(attrAccount)))
}
