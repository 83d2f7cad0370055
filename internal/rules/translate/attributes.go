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

// spanAttributes reads the attributes of the current span and its resource as texts and numbers.
type spanAttributes struct {
	request        *otlp.Request
	output         *spantable.Table   // new table; it shares the request's body, so texts of the request are valid in it
	spanAttrs      spantable.Selected // attributes of the current span
	resourceAttrs  spantable.Selected // attributes of its resource
	spanOrResource spantable.LabelSet // labels that the span or the resource has
	scratch        []byte             // temporary texts of Value
}

// selectResource makes r the current resource, whose attributes the other methods read. After that,
// there is no current span until the next call of selectSpan.
func (a *spanAttributes) selectResource(r *otlp.Resource) {
	a.resourceAttrs.Set = spantable.LabelSet{}
	a.resourceAttrs.AddMissing(&a.request.Table, r.TagStart, r.TagEnd)
	a.spanAttrs.Set, a.spanOrResource = spantable.LabelSet{}, a.resourceAttrs.Set
}

// selectSpan makes s the current span. The other methods read its attributes and those of the current
// resource, to which s must belong.
func (a *spanAttributes) selectSpan(s *spantable.Span) {
	a.scratch = a.scratch[:0]
	a.spanAttrs.Set = spantable.LabelSet{}
	a.spanAttrs.AddMissing(&a.request.Table, s.TagStart, s.TagEnd)
	a.spanOrResource = a.spanAttrs.Set.Union(&a.resourceAttrs.Set)
}

// textOf returns the text of an attribute of the current span. If the span has no such text, or an
// empty one, it returns that of the current resource. It returns an empty text if neither has one.
func (a *spanAttributes) textOf(l spantable.Label) spantable.Text {
	if !a.spanOrResource.Has(l) {
		return spantable.Text{}
	}
	return a.findText(l)
}

// findText returns the text of an attribute of the current span. If the span has no such text, or an empty
// one, it returns that of the current resource. It is not a part of textOf, so that textOf can be inlined.
func (a *spanAttributes) findText(l spantable.Label) spantable.Text {
	for _, attributes := range [...]*spantable.Selected{&a.spanAttrs, &a.resourceAttrs} {
		t := attributes.Tag(&a.request.Table, l)
		isText := t != nil && t.Type == spantable.TypeText
		if isText && t.Text().Len > 0 {
			return t.Text()
		}
	}
	return spantable.Text{}
}

// textOfEither returns the text of the attribute l of the current span or its resource. If neither has
// such a text, it returns that of the attribute fallback, or an empty text.
func (a *spanAttributes) textOfEither(l, fallback spantable.Label) spantable.Text {
	if text := a.textOf(l); text.Len > 0 {
		return text
	}
	return a.textOf(fallback)
}

// integerOf returns the value of an attribute of the current span that is an integer. If the span has
// no such integer, it returns that of the resource. ok is false if neither has one.
func (a *spanAttributes) integerOf(l spantable.Label) (n int64, ok bool) {
	for _, attributes := range [...]*spantable.Selected{&a.spanAttrs, &a.resourceAttrs} {
		t := attributes.Tag(&a.request.Table, l)
		isInteger := t != nil && t.Type == spantable.TypeInteger
		if isInteger {
			return int64(t.Bits), true
		}
	}
	return 0, false
}

// resourceTagValue returns the value of an attribute of the current resource, normalized like the value
// of a tag in the Datadog agent. The value can have any type. The result is empty if there is no such
// attribute.
func (a *spanAttributes) resourceTagValue(l spantable.Label) spantable.Text {
	t := a.resourceAttrs.Tag(&a.request.Table, l)
	if t == nil {
		return spantable.Text{}
	}
	return a.normalizeTagValue(a.formatValue(t))
}

// Value returns the text of an attribute of the current span, normalized like the value of a tag in the
// Datadog agent. It does not normalize the HTTP method, because callers only test whether it is empty.
// The result is valid until the next span is selected. Value implements work.Span.
func (a *spanAttributes) Value(attribute work.Attribute) string {
	names := workAttributes[attribute]
	value := a.textOfEither(names.current, names.deprecated)
	text := a.output.Bytes(value)
	if attribute == work.HTTPMethod || rules.IsTagValue(text) {
		return spantable.View(text)
	}
	start := len(a.scratch)
	a.scratch = rules.AppendTagValue(a.scratch, spantable.View(text))
	return spantable.View(a.scratch[start:])
}

// formatValue returns the value of an attribute as text. It formats numbers and booleans.
func (a *spanAttributes) formatValue(t *spantable.Tag) spantable.Text {
	if t.Type == spantable.TypeText {
		return t.Text()
	}
	start := len(a.output.Derived)
	a.output.Derived = a.request.AppendValue(a.output.Derived, t)
	return a.output.DerivedSince(start)
}

// normalizeTagValue returns text, normalized like the value of a tag in the Datadog agent. It returns
// text itself if it is already normalized. Otherwise, it appends the result to a.output.Derived.
func (a *spanAttributes) normalizeTagValue(text spantable.Text) spantable.Text {
	if rules.IsTagValue(a.output.Bytes(text)) {
		return text
	}
	start := len(a.output.Derived)
	a.output.Derived = rules.AppendTagValue(a.output.Derived, a.output.String(text))
	return a.output.DerivedSince(start)
}

// join returns the concatenation of parts.
func (a *spanAttributes) join(parts ...string) spantable.Text {
	start := len(a.output.Derived)
	for _, part := range parts {
		a.output.Derived = append(a.output.Derived, part...)
	}
	return a.output.DerivedSince(start)
}

// formatInteger returns n as decimal text.
func (a *spanAttributes) formatInteger(n int64) spantable.Text {
	start := len(a.output.Derived)
	a.output.Derived = strconv.AppendInt(a.output.Derived, n, 10)
	return a.output.DerivedSince(start)
}

// naming derives the names of the current span.
type naming struct{ spanAttributes }

// setNames sets the resource, service, name and type of s, the Datadog span for the current OTLP span.
// s must already have its kind and the name of the OTLP span.
func (n *naming) setNames(s *spantable.Span) {
	s.Resource = n.resource(s)
	s.Service = n.service()
	s.Name = n.operation(s.Kind)
	s.Type = n.workType(s.Kind)
}

// service returns the service name of the current span, or the default that the agent uses.
func (n *naming) service() spantable.Text {
	if service := n.textOf(attrService); service.Len > 0 {
		return service
	}
	return n.join("otlpresourcenoservicename")
}

// operation returns the operation of the current span, such as http.server.request. This is the value
// of the attribute operation.name. If the value is missing or empty, work.AppendOperation derives an
// operation from other attributes.
func (n *naming) operation(kind spantable.Kind) spantable.Text {
	if name := n.normalizeTagValue(n.textOf(attrOperation)); name.Len > 0 {
		return name
	}
	start := len(n.output.Derived)
	n.output.Derived = work.AppendOperation(n.output.Derived, n, kind)
	return n.output.DerivedSince(start)
}

// workType returns the type of the current span, such as web or sql. This is the value of the attribute
// span.type. If the value is missing or empty, work.Type derives a type from other attributes.
func (n *naming) workType(kind spantable.Kind) spantable.Text {
	if name := n.textOf(attrType); name.Len > 0 {
		return name
	}
	return n.join(work.Type(n, kind))
}

// maxResource is the length in bytes to which the ingest cuts a resource.
const maxResource = 5000

// resource returns the resource name of the current span, truncated to maxResource bytes.
func (n *naming) resource(s *spantable.Span) spantable.Text {
	name := n.fullResource(s)
	name.Len = min(name.Len, maxResource)
	return name
}

// fullResource returns the resource name of the current span, of any length. This is the value of the
// attribute resource.name, or otherwise a description of the HTTP request, message, remote procedure
// call, GraphQL query or SQL statement. If the span has no such attributes, the result is s.Name.
func (n *naming) fullResource(s *spantable.Span) spantable.Text {
	if name := n.textOf(attrResource); name.Len > 0 {
		return name
	}
	if method := n.textOfEither(attrHTTPMethod, attrOldHTTPMethod); method.Len > 0 {
		if n.output.String(method) == "_OTHER" {
			method = n.join("HTTP")
		}
		switch s.Kind {
		case spantable.KindClient:
			return n.joinNonEmpty(method, n.textOf(attrTemplate))
		case spantable.KindServer:
			return n.joinNonEmpty(method, n.textOf(attrRoute))
		}
		return method
	}
	if operation := n.textOf(attrMessagingOperation); operation.Len > 0 {
		return n.joinNonEmpty(operation, n.textOfEither(attrDestination, attrDestinationName))
	}
	if method := n.textOf(attrRPCMethod); method.Len > 0 {
		return n.joinNonEmpty(method, n.textOf(attrRPCService))
	}
	if query := n.textOf(attrGraphQLType); query.Len > 0 {
		return n.joinNonEmpty(query, n.textOf(attrGraphQLName))
	}
	if n.textOfEither(attrDBSystem, attrOldDBSystem).Len > 0 {
		if statement := n.textOfEither(attrStatement, attrQuery); statement.Len > 0 {
			return statement
		}
	}
	return s.Name
}

// joinNonEmpty returns text, a space and suffix. It returns only text if suffix is empty.
func (n *naming) joinNonEmpty(text, suffix spantable.Text) spantable.Text {
	if suffix.Len == 0 {
		return text
	}
	return n.join(n.output.String(text), " ", n.output.String(suffix))
}

// sender returns the process that the current resource describes.
func (a *spanAttributes) sender() spantable.Sender {
	return spantable.Sender{
		Lang:          a.resourceTagValue(attrLanguage),
		TracerVersion: a.join(span.OTLPVersion, a.output.String(a.resourceTagValue(attrSDKVersion))),
		Container:     a.normalizeTagValue(a.textOf(attrContainer)),
		Host:          a.host(),
		Env:           a.normalizeTagValue(a.textOfEither(attrEnvironment, attrOldEnvironment)),
	}
}

// hostless contains cloud platforms whose resources have no host name.
var hostless = map[string]bool{
	"gcp_cloud_functions": true, "gcp_cloud_run": true, "azure_functions": true, "azure.functions": true,
	"azure_app_service": true, "azure.app_service": true,
	"azure_container_apps": true, "azure.container_apps": true,
}

// isLocalhost contains names that do not identify a host.
var isLocalhost = map[string]bool{
	"0.0.0.0": true, "127.0.0.1": true, "localhost": true, "localhost.localdomain": true,
	"localhost6.localdomain6": true, "ip6-localhost": true,
}

// host returns the host name of the current resource. It returns an empty text if the resource has no
// name that identifies a host. The Datadog agent then uses its own host name.
func (a *spanAttributes) host() spantable.Text {
	name := a.hostAttribute()
	if isLocalhost[a.output.String(name)] {
		return spantable.Text{}
	}
	return name
}

// hostAttribute returns the host name in the attributes of the current resource, or an empty text if
// there is none. Like in the Datadog agent, the attributes to read depend on the cloud provider and
// platform. The order of the cases is that of the agent.
func (a *spanAttributes) hostAttribute() spantable.Text {
	valueOf := func(l spantable.Label) string { return a.output.String(a.textOf(l)) }
	has := a.resourceAttrs.Set.Has
	provider := valueOf(attrCloud)
	switch {
	case hostless[valueOf(attrPlatform)]:
		return spantable.Text{}
	case has(attrHost):
		return a.formatValue(a.resourceAttrs.Tag(&a.request.Table, attrHost)) // of any type
	case has(attrDatadogHost):
		return a.textOf(attrDatadogHost)
	case valueOf(attrLaunchType) == "fargate":
		return spantable.Text{}
	case provider == "aws":
		return a.firstOfResource(attrHostID)
	case provider == "gcp":
		return a.hostOfGCP()
	case provider == "azure":
		return a.firstOfResource(attrHostID, attrHostName)
	case has(attrNode): // Kubernetes without a cloud provider
		return a.hostOfKubernetes()
	}
	return a.firstOfResource(attrHostID, attrHostName)
}

// hostOfKubernetes returns the host name of a resource in Kubernetes, as "node-cluster". If the resource
// does not name its cluster, it returns only the name of the node.
func (a *spanAttributes) hostOfKubernetes() spantable.Text {
	node := a.textOf(attrNode)
	if !a.resourceAttrs.Set.Has(attrCluster) {
		return node
	}
	cluster := a.textOf(attrCluster)
	return a.join(a.output.String(node), "-", a.output.String(cluster))
}

// firstOfResource returns the text of the first of the given attributes that the current resource has.
func (a *spanAttributes) firstOfResource(labels ...spantable.Label) spantable.Text {
	for _, l := range labels {
		if a.resourceAttrs.Set.Has(l) {
			return a.textOf(l)
		}
	}
	return spantable.Text{}
}

// hostOfGCP returns the host name of a resource in Google Cloud, as "machine.project". If the name of
// the machine has three dots or more, it removes the domain. It returns an empty text if the resource
// does not have the attributes host.name and cloud.account.id.
func (a *spanAttributes) hostOfGCP() spantable.Text {
	has := a.resourceAttrs.Set.Has
	identifiesHost := has(attrHostName) && has(attrAccount)
	if !identifiesHost {
		return spantable.Text{}
	}
	machine := a.output.String(a.textOf(attrHostName))
	const dotsOfDomain = 3
	if strings.Count(machine, ".") >= dotsOfDomain {
		machine, _, _ = strings.Cut(machine, ".")
	}
	project := a.output.String(a.textOf(attrAccount))
	return a.join(machine, ".", project)
}
