package otel

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Conventions is the version of OpenTelemetry's semantic conventions whose span names nameRules
// implements.
const Conventions = "1.44.0"

// nameRules is the table of span names. The first rule that applies to a span decides its name; if
// no rule applies, the span keeps its name. docs/semantics.md explains the rules, and the extension
// for the Java agent has the same ones in SpanNames.java.
var nameRules = [...]nameRule{
	// {mcp.method.name} {tool or prompt}
	{anyKind, spantable.LabelsOf(labelMCPMethod), (*keys).mcpName},
	// {gen_ai.operation.name} {model, or tool, agent, workflow or data source}
	{anyKind, spantable.LabelsOf(labelGenAIOperation), (*keys).genAIName},
	// {messaging.operation.name} {destination template, name, or server address}
	{
		anyKind, spantable.LabelsOf(labelMessagingOperation, labelMessagingOperationType, labelOldMessagingOperation),
		(*keys).messagingName,
	},
	// {rpc.method}, which is {rpc.service}/{rpc.method} with the older attributes, and
	// {rpc.service}.{rpc.method} for AWS
	{anyKind, spantable.LabelsOf(labelRPCMethod), (*keys).rpcName},
	// {db.query.summary}, otherwise {db.operation.name} {collection, procedure, namespace, or server address}
	{
		notServer, spantable.LabelsOf(labelDBSystem, labelOldDBSystem, labelDBOperation, labelOldDBOperation, labelDBSummary),
		(*keys).databaseName,
	},
	// {http.request.method} {http.route}
	{spantable.KindsOf(spantable.KindServer), httpMethodLabels, (*keys).httpServerName},
	// {http.request.method} {url.template}
	{spantable.KindsOf(spantable.KindClient), httpMethodLabels, (*keys).httpClientName},
}

// nameRule is the convention for the names of spans that describe one kind of work.
type nameRule struct {
	kinds spantable.KindSet  // kinds of spans that the rule applies to
	has   spantable.LabelSet // attributes of which a span has at least one if the rule applies
	// name returns the name of the selected span. The result is empty if the span keeps its name,
	// because no attribute describes the work better.
	name func(k *keys, sent string) nameParts
}

const (
	anyKind   = ^spantable.KindSet(0)
	notServer = anyKind &^ (1 << spantable.KindServer)
)

var httpMethodLabels = spantable.LabelsOf(labelHTTPMethod, labelOldHTTPMethod)

// spanName is the name under which a span is counted.
type spanName struct {
	text  string
	route string // route that only the name contains; "" if there is none
	// isRenamed reports whether text differs from the name that the span was sent with.
	isRenamed bool
}

// nameOf returns the name of the selected span. It is valid until the next call.
func (k *keys) nameOf(s *spantable.Span) spanName {
	sent := k.request.String(s.Name)
	if k.policy.keepsNames {
		return spanName{text: sent}
	}
	k.route = ""
	for i := range nameRules {
		r := &nameRules[i]
		if !r.kinds.Has(s.Kind) || !k.selected.Set.Overlaps(&r.has) {
			continue
		}
		parts := r.name(k, sent)
		if parts[0] == "" || parts.equal(sent) {
			break
		}
		k.named = append(append(append(k.named[:0], parts[0]...), parts[1]...), parts[2]...)
		return spanName{spantable.View(k.named), k.route, true}
	}
	return spanName{text: sent, route: k.route}
}

// nameParts is a name in three parts, the second of which separates the others. Most spans have the
// right name, and comparing the parts with it is cheaper than joining them.
type nameParts [3]string

// equal reports whether the joined parts are the name.
func (p *nameParts) equal(name string) bool {
	first, second := len(p[0]), len(p[0])+len(p[1])
	return len(name) == second+len(p[2]) && name[:first] == p[0] && name[first:second] == p[1] && name[second:] == p[2]
}

// withTarget returns the name of an operation and its target. Either can be empty.
func withTarget(operation, target string) nameParts {
	if operation == "" || target == "" {
		return nameParts{operation}
	}
	return nameParts{operation, " ", target}
}

// awsAPI is the RPC system of AWS SDKs. unknownMethod is the value of a method that an
// instrumentation does not know.
const (
	awsAPI        = "aws-api"
	unknownMethod = "_OTHER"
)

// httpMethods are the HTTP methods that the conventions know. Callers of a server can send any other
// text, so it is not part of a name.
var httpMethods = [...]string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "QUERY"}

// httpMethod returns the method of the selected span as it is in names: HTTP if it is unknown.
func (k *keys) httpMethod() string {
	sent := k.text(labelHTTPMethod, labelOldHTTPMethod)
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

func (k *keys) httpServerName(sent string) nameParts {
	method, route := k.httpMethod(), k.text(labelHTTPRoute)
	if route == "" {
		k.route = k.routeIn(sent, method, true)
		route = k.route
	}
	return withTarget(method, route)
}

func (k *keys) httpClientName(sent string) nameParts {
	method, template := k.httpMethod(), k.text(labelURLTemplate)
	if template == "" {
		template = k.routeIn(sent, method, false)
	}
	return withTarget(method, template)
}

func (k *keys) databaseName(sent string) nameParts {
	if summary := k.text(labelDBSummary); summary != "" {
		return nameParts{summary}
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
		return nameParts{target}
	}
	return nameParts{system}
}

// isStatement reports whether a name is the statement that the selected span executes.
func (k *keys) isStatement(name string) bool {
	return strings.Contains(name, " ") && name == k.text(labelDBQuery, labelOldDBStatement)
}

func (k *keys) rpcName(string) nameParts {
	method, service := k.text(labelRPCMethod), k.text(labelRPCService)
	system := k.text(labelRPCSystem, labelOldRPCSystem)
	switch {
	case method == unknownMethod:
		return nameParts{system}
	case method == "" || service == "" || strings.Contains(method, "/"):
		return nameParts{method}
	case system == awsAPI:
		return nameParts{service, ".", method}
	}
	return nameParts{service, "/", method}
}

func (k *keys) messagingName(string) nameParts {
	operation := k.firstText(labelMessagingOperation, labelOldMessagingOperation, labelMessagingOperationType)
	if template := k.text(labelMessagingTemplate); template != "" {
		return withTarget(operation, template)
	}
	if k.isTrue(labelMessagingTemporary) || k.isTrue(labelOldMessagingTemporary) || k.isTrue(labelMessagingAnonymous) {
		return nameParts{operation}
	}
	destination := k.text(labelMessagingDestination, labelOldMessagingDestination)
	if destination == "" {
		destination = k.serverAndPort()
	}
	return withTarget(operation, destination)
}

func (k *keys) genAIName(string) nameParts {
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

func (k *keys) mcpName(string) nameParts {
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
// Others write the path of the request there, which is not a route. A text with a placeholder is a
// route unless it is the path. A text without placeholders is a route only in the spans of servers
// that write no paths: if it equals the path of the request, that is then a route without
// placeholders. Because a name can be set by the application as well, such a path must not contain
// an identifier, and it must have been found.
func (k *keys) routeIn(name, method string, isServer bool) string {
	route := pathIn(name, method)
	if route == "" || strings.ContainsAny(route, "? ") {
		return ""
	}
	path, isZipkin := k.urlPath()
	isPath := path != "" && endsIn(path, route)
	switch {
	case strings.ContainsAny(route, "{<[(:*"):
		if isPath {
			return ""
		}
	case !isServer || !k.isGo && !isZipkin:
		return ""
	case isPath && (k.httpStatus() == 404 || hasIdentifier(route)):
		return ""
	}
	return route
}

// pathIn returns the part of a name from its first slash if the part before is empty or names the
// method, as in "GET /users", "HTTP GET /users" and "/users".
func pathIn(name, method string) string {
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

// urlPath returns the path of an HTTP request, or "". isZipkin reports whether it is from the tag
// that Zipkin's instrumentations have for it.
func (k *keys) urlPath() (path string, isZipkin bool) {
	if path = k.text(labelURLPath); path != "" {
		return path, false
	}
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
