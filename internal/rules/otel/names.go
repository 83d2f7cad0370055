package otel

import (
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Conventions is the version of OpenTelemetry's semantic conventions whose span names nameRules
// implements.
const Conventions = "1.44.0"

// nameRules is the table of span names. The first rule that applies to a span decides its name. If
// there is none, the span keeps its name. docs/semantics.md explains the rules, and the extension
// for the Java agent has the same ones in SpanNames.java.
var nameRules = [...]nameRule{
	// {mcp.method.name} {tool or prompt}
	{anyKind, []spantable.Label{labelMCPMethod}, (*keys).mcpName},
	// {gen_ai.operation.name} {model, or tool, agent, workflow or data source}
	{anyKind, []spantable.Label{labelGenAIOperation}, (*keys).genAIName},
	// {messaging.operation.name} {destination template, name, or server address}
	{
		anyKind,
		[]spantable.Label{labelMessagingOperation, labelMessagingOperationType, labelOldMessagingOperation},
		(*keys).messagingName,
	},
	// {rpc.method}, which is {rpc.service}/{rpc.method} with the older attributes, and
	// {rpc.service}.{rpc.method} for AWS
	{anyKind, []spantable.Label{labelRPCMethod}, (*keys).rpcName},
	// {db.query.summary}, otherwise {db.operation.name} {collection, procedure, namespace, or server address}
	{
		notServer,
		[]spantable.Label{labelDBSystem, labelOldDBSystem, labelDBOperation, labelOldDBOperation, labelDBSummary},
		(*keys).databaseName,
	},
	// {http.request.method} {http.route}
	{
		spantable.KindsOf(spantable.KindServer),
		[]spantable.Label{labelHTTPMethod, labelOldHTTPMethod},
		(*keys).httpServerName,
	},
	// {http.request.method} {url.template}
	{
		spantable.KindsOf(spantable.KindClient),
		[]spantable.Label{labelHTTPMethod, labelOldHTTPMethod},
		(*keys).httpClientName,
	},
}

// nameRule is the convention for the names of spans that describe one kind of work.
type nameRule struct {
	kinds spantable.KindSet // kinds of spans that the rule applies to
	has   []spantable.Label // attributes of which a span has at least one if the rule applies
	// name returns the name of a span that was sent with another one. The result is empty if the span
	// keeps its name, because no attribute describes the work better.
	name func(k *keys, s *spantable.Span, sent string) nameParts
}

const (
	anyKind   = ^spantable.KindSet(0)
	notServer = anyKind &^ (1 << spantable.KindServer)
)

// noRule is the number of the rule for spans that keep their names. It is larger than that of any other
// rule, which is its index in nameRules.
const noRule = uint8(math.MaxUint8)

// httpRules is the number of the first rule for HTTP. All rules after it are for HTTP as well.
const httpRules = uint8(len(nameRules) - 2)

// nameReader defines what the tags of spans mean for their names, by kind and label.
type nameReader [spantable.Kinds][spantable.MaxLabels]struct {
	rule uint8    // number of the first rule that applies to spans with the tag
	http httpPart // part of HTTP names that the tag is
}

// httpPart is an attribute of an HTTP span. httpTarget is the route for a server, and the template for a
// client.
type httpPart uint8

const (
	noPart httpPart = iota
	httpMethod
	oldHTTPMethod
	httpTarget
	httpPath
	httpParts // number of parts
)

// newNameReader returns a nameReader, or nil if spans keep their names.
func newNameReader(keepsNames bool) *nameReader {
	if keepsNames {
		return nil
	}
	reader := &nameReader{}
	for kind := range reader {
		tags := &reader[kind]
		for l := range tags {
			tags[l].rule = noRule
		}
		for i := len(nameRules) - 1; i >= 0; i-- {
			if nameRules[i].kinds.Has(spantable.Kind(kind)) {
				for _, l := range nameRules[i].has {
					tags[l].rule = uint8(i)
				}
			}
		}
		tags[labelHTTPMethod].http, tags[labelOldHTTPMethod].http = httpMethod, oldHTTPMethod
		tags[labelURLPath].http = httpPath
	}
	reader[spantable.KindServer][labelHTTPRoute].http = httpTarget
	reader[spantable.KindClient][labelURLTemplate].http = httpTarget
	return reader
}

// spanName is the name under which a span is counted.
type spanName struct {
	text  string
	route string // route that only the name contains; "" if there is none
	// isRenamed reports whether text differs from the name that the span was sent with.
	isRenamed bool
}

// nameOf returns the name of a span. It is valid until the next call.
func (k *keys) nameOf(s *spantable.Span) spanName {
	sent := k.request.String(s.Name)
	if k.policy.nameReader == nil {
		return spanName{text: sent}
	}
	rule, tags, reader := noRule, k.request.TagsOf(s), &k.policy.nameReader[s.Kind]
	k.http, k.route = [httpParts]uint32{}, ""
	for i := len(tags) - 1; i >= 0; i-- { // of several tags with a label the first one counts
		tag := &reader[tags[i].Label]
		rule = min(rule, tag.rule)
		k.http[tag.http] = s.First + uint32(i) + 1 // without a branch on the label, which is unpredictable
	}
	if rule == noRule || rule >= httpRules && k.isHTTPName(sent) {
		return spanName{text: sent}
	}
	parts := nameRules[rule].name(k, s, sent)
	if parts.first == "" || parts.equal(sent) {
		return spanName{text: sent, route: k.route}
	}
	k.name = append(append(append(k.name[:0], parts.first...), parts.separator...), parts.last...)
	return spanName{spantable.View(k.name), k.route, true}
}

// httpText returns a part of the HTTP span that is being named, or "".
func (k *keys) httpText(p httpPart) string {
	if i := k.http[p]; i != 0 {
		return k.textOfTag(&k.request.Tags[i-1])
	}
	return ""
}

// nameParts is a name in three parts. Most spans have the right name, and comparing the parts with it is
// cheaper than joining them.
type nameParts struct{ first, separator, last string }

// equal reports whether the joined parts are the name.
func (p nameParts) equal(name string) bool {
	first, second := len(p.first), len(p.first)+len(p.separator)
	return len(name) == second+len(p.last) &&
		name[:first] == p.first && name[first:second] == p.separator && name[second:] == p.last
}

// withTarget returns the name of an operation and its target. Either can be empty.
func withTarget(operation, target string) nameParts {
	if operation == "" || target == "" {
		return nameParts{first: operation}
	}
	return nameParts{operation, " ", target}
}

// awsAPI is the RPC system of AWS SDKs. unknownMethod is the value of a method that an
// instrumentation does not know.
const (
	awsAPI        = "aws-api"
	unknownMethod = "_OTHER"
)

// isHTTPName reports whether a name consists of the method and the target of an HTTP span. It saves most of
// the time for names, because most of them do.
func (k *keys) isHTTPName(name string) bool {
	method, target := k.httpText(k.httpMethodPart()), k.httpText(httpTarget)
	n := len(method)
	switch {
	case !slices.Contains(httpMethods, method):
		return false
	case target == "":
		return name == method
	}
	return len(name) == n+1+len(target) && name[n] == ' ' && name[:n] == method && name[n+1:] == target
}

// httpMethods are the HTTP methods that the conventions know.
var httpMethods = []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "QUERY"}

// httpMethodPart returns the part that the method of an HTTP span is.
func (k *keys) httpMethodPart() httpPart {
	if k.http[httpMethod] == 0 {
		return oldHTTPMethod
	}
	return httpMethod
}

// httpMethod returns the method of an HTTP span as it is in names. It is HTTP for a method that the
// conventions do not know, because callers of a server can send any text.
func (k *keys) httpMethod() string {
	sent := k.httpText(k.httpMethodPart())
	if sent == "" {
		return ""
	}
	for _, known := range httpMethods {
		if sent == known || equalFold(sent, known) {
			return known
		}
	}
	return "HTTP"
}

func (k *keys) httpServerName(s *spantable.Span, sent string) nameParts {
	method, route := k.httpMethod(), k.httpText(httpTarget)
	if route == "" {
		route = k.routeIn(s, sent, method)
		k.route = route
	}
	return withTarget(method, route)
}

func (k *keys) httpClientName(s *spantable.Span, sent string) nameParts {
	method, template := k.httpMethod(), k.httpText(httpTarget)
	if template == "" {
		template = k.routeIn(s, sent, method)
	}
	return withTarget(method, template)
}

func (k *keys) databaseName(s *spantable.Span, sent string) nameParts {
	k.selectOwn(s)
	if summary := k.text(labelDBSummary); summary != "" {
		return nameParts{first: summary}
	}
	operation := k.text(labelDBOperation, labelOldDBOperation)
	if operation == "" && !k.isStatement(sent) {
		return nameParts{}
	}
	system := k.text(labelDBSystem, labelOldDBSystem)
	target := k.firstText(
		labelDBCollection, labelOldDBCollection, labelMongoDBCollection, labelCassandraTable, labelDBProcedure,
	)
	// The namespace of Redis is a number, and its operations need no target.
	if target == "" && system != "redis" {
		if target = k.text(labelDBNamespace, labelOldDBNamespace); target == "" {
			target = k.serverAndPort()
		}
	}
	switch {
	case operation != "":
		return withTarget(operation, target)
	case target != "":
		return nameParts{first: target}
	}
	return nameParts{first: system}
}

// isStatement reports whether a name is the statement that the selected span executes.
func (k *keys) isStatement(name string) bool {
	return strings.Contains(name, " ") && name == k.text(labelDBQuery, labelOldDBStatement)
}

func (k *keys) rpcName(s *spantable.Span, _ string) nameParts {
	k.selectOwn(s)
	method, service := k.text(labelRPCMethod), k.text(labelRPCService)
	system := k.text(labelRPCSystem, labelOldRPCSystem)
	switch {
	case method == unknownMethod:
		return nameParts{first: system}
	case method == "" || service == "" || strings.Contains(method, "/"):
		return nameParts{first: method}
	case system == awsAPI:
		return nameParts{service, ".", method}
	}
	return nameParts{service, "/", method}
}

func (k *keys) messagingName(s *spantable.Span, _ string) nameParts {
	k.selectOwn(s)
	operation := k.firstText(labelMessagingOperation, labelOldMessagingOperation, labelMessagingOperationType)
	if template := k.text(labelMessagingTemplate); template != "" {
		return withTarget(operation, template)
	}
	if k.isTrue(labelMessagingTemporary) || k.isTrue(labelOldMessagingTemporary) || k.isTrue(labelMessagingAnonymous) {
		return nameParts{first: operation}
	}
	destination := k.text(labelMessagingDestination, labelOldMessagingDestination)
	if destination == "" {
		destination = k.serverAndPort()
	}
	return withTarget(operation, destination)
}

func (k *keys) genAIName(s *spantable.Span, _ string) nameParts {
	k.selectOwn(s)
	operation, target := k.text(labelGenAIOperation), labelGenAIModel
	switch operation {
	case "execute_tool":
		target = labelGenAITool
	case "create_agent", "invoke_agent":
		target = labelGenAIAgent
	case "invoke_workflow":
		target = labelGenAIWorkflow
	case "retrieval":
		target = labelGenAIDataSource
	}
	return withTarget(operation, k.text(target))
}

func (k *keys) mcpName(s *spantable.Span, _ string) nameParts {
	k.selectOwn(s)
	return withTarget(k.text(labelMCPMethod), k.firstText(labelGenAITool, labelGenAIPrompt))
}

// firstText returns the first value of the labels that is not empty.
func (k *keys) firstText(labels ...spantable.Label) string {
	for _, l := range labels {
		if text := k.text(l); text != "" {
			return text
		}
	}
	return ""
}

// isTrue reports whether an attribute is the boolean true.
func (k *keys) isTrue(l spantable.Label) bool {
	t := k.tag(l)
	return t != nil && (t.Value == spantable.IsBool && t.Bits == 1 || t.Value == spantable.IsText && k.text(l) == "true")
}

// serverAndPort returns the address of the called server with its port, if it is known.
func (k *keys) serverAndPort() string {
	address, port := k.text(labelServerAddress, labelOldPeerName), k.text(labelServerPort, labelOldPeerPort)
	if address == "" || port == "" {
		return address
	}
	start := len(k.scratch)
	k.scratch = append(append(append(k.scratch, address...), ':'), port...)
	return spantable.View(k.scratch[start:])
}

// routeIn returns the route that the name of an HTTP span contains after its method, or "". Go's
// otelhttp and Zipkin's instrumentations write it there, and have no attribute for it.
//
// Others write the path of the request there. So a text with a placeholder is a route unless it is the path.
// A text without placeholders is a route only in server spans of these two, where it can equal the path:
// GET /health. But applications can set names too, so that path must exist and contain no identifier.
func (k *keys) routeIn(s *spantable.Span, name, method string) string {
	route, meaning := pathIn(name, method), uint8(0)
	for i := range len(route) {
		meaning |= inRoutes[route[i]]
	}
	if route == "" || meaning&notInRoute != 0 {
		return ""
	}
	path, isZipkin := k.httpText(httpPath), false
	if path == "" {
		k.selectOwn(s)
		path, isZipkin = k.otherPath()
	}
	isPath := path != "" && endsIn(path, route)
	switch {
	case meaning&inPlaceholder != 0:
		if isPath {
			return ""
		}
	case s.Kind != spantable.KindServer || !k.isGo && !isZipkin:
		return ""
	case isPath && (hasIdentifier(route) || k.isNotFound(s)):
		return ""
	}
	return route
}

// Meanings of a byte in a text that may be a route.
const (
	inPlaceholder uint8 = 1 << iota
	notInRoute
)

// inRoutes contains the meanings of all bytes.
var inRoutes = [256]uint8{
	'{': inPlaceholder, '<': inPlaceholder, '[': inPlaceholder, '(': inPlaceholder, ':': inPlaceholder,
	'*': inPlaceholder, '?': notInRoute, ' ': notInRoute,
}

// isNotFound reports whether a server has no such path.
func (k *keys) isNotFound(s *spantable.Span) bool {
	k.selectOwn(s)
	return k.httpStatus() == http.StatusNotFound
}

// pathIn returns the part of a name from its first slash if the part before is empty or names the
// method, as in "GET /users", "HTTP GET /users" and "/users".
func pathIn(name, method string) string {
	if rest, found := strings.CutPrefix(name, method); found && strings.HasPrefix(rest, " /") {
		return rest[1:]
	}
	at := strings.IndexByte(name, '/')
	if at < 0 {
		return ""
	}
	const protocol = "HTTP "
	before := name[:at]
	if len(before) > len(protocol) && equalFold(before[:len(protocol)], protocol) {
		before = before[len(protocol):]
	}
	if before != "" && (len(before) != len(method)+1 || !equalFold(before[:len(method)], method) || before[len(method)] != ' ') {
		return ""
	}
	return name[at:]
}

// otherPath returns the path of the selected HTTP span, which has no url.path, or "". isZipkin reports
// whether it is from the tag that Zipkin's instrumentations have for it.
func (k *keys) otherPath() (path string, isZipkin bool) {
	if path = k.text(labelZipkinPath); path != "" {
		return path, true
	}
	if path = k.text(labelOldHTTPTarget); path == "" {
		path = k.text(labelURLFull, labelOldHTTPURL)
	}
	if _, after, found := strings.Cut(path, "://"); found {
		path = after[max(0, strings.IndexByte(after, '/')):]
	}
	path, _, _ = strings.Cut(path, "?")
	return path, false
}

// endsIn reports whether a path ends in a text. The path can have escaped bytes, and a prefix that the
// application is mounted at. Zipkin's reporters write names in lower case.
func endsIn(path, text string) bool {
	for text != "" {
		if path == "" {
			return false
		}
		b, size := path[len(path)-1], 1
		if len(path) >= 3 && path[len(path)-3] == '%' {
			high, low := unhex(path[len(path)-2]), unhex(b)
			if high < 16 && low < 16 {
				b, size = high<<4|low, 3
			}
		}
		if lower(b) != lower(text[len(text)-1]) {
			return false
		}
		path, text = path[:len(path)-size], text[:len(text)-1]
	}
	return true
}

// hasIdentifier reports whether a segment of a path contains a digit, and is not a version such as v1.
func hasIdentifier(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if version, isVersion := strings.CutPrefix(segment, "v"); isVersion && len(version) <= 2 {
			continue
		}
		if strings.ContainsAny(segment, "0123456789") {
			return true
		}
	}
	return false
}

// equalFold reports whether two texts are equal, whatever the case of their ASCII letters.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}

// unhex returns the value of a hexadecimal digit, or 16.
func unhex(b byte) byte {
	switch b = lower(b); {
	case '0' <= b && b <= '9':
		return b - '0'
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10
	}
	return 16
}
