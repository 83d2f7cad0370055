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
	{kinds: anyKind, anyOf: []spantable.Label{labelMCPMethod}, name: (*keys).mcpName},
	// {gen_ai.operation.name} {model, or tool, agent, workflow or data source}
	{kinds: anyKind, anyOf: []spantable.Label{labelGenAIOperation}, name: (*keys).genAIName},
	// {messaging.operation.name} {destination template, name, or server address}
	{
		kinds: anyKind,
		anyOf: []spantable.Label{labelMessagingOperation, labelMessagingOperationType, labelOldMessagingOperation},
		name:  (*keys).messagingName,
	},
	// {rpc.method}, which is {rpc.service}/{rpc.method} with the older attributes, and
	// {rpc.service}.{rpc.method} for AWS
	{kinds: anyKind, anyOf: []spantable.Label{labelRPCMethod}, name: (*keys).rpcName},
	// {db.query.summary}, otherwise {db.operation.name} {collection, procedure, namespace, or server address}
	{
		kinds: notServer,
		anyOf: []spantable.Label{labelDBSystem, labelOldDBSystem, labelDBOperation, labelOldDBOperation, labelDBSummary},
		name:  (*keys).databaseName,
	},
	// {http.request.method} {http.route}
	{
		kinds:  spantable.KindsOf(spantable.KindServer),
		anyOf:  []spantable.Label{labelHTTPMethod, labelOldHTTPMethod},
		name:   (*keys).httpServerName,
		isHTTP: true,
	},
	// {http.request.method} {url.template}
	{
		kinds:  spantable.KindsOf(spantable.KindClient),
		anyOf:  []spantable.Label{labelHTTPMethod, labelOldHTTPMethod},
		name:   (*keys).httpClientName,
		isHTTP: true,
	},
}

// nameRule is the convention for the names of spans that describe one kind of work.
type nameRule struct {
	kinds spantable.KindSet // kinds of spans that the rule applies to
	anyOf []spantable.Label // the rule applies if a span has at least one of these attributes
	// name returns the name of a span that was sent with another one. The result is empty if the span
	// keeps its name, because no attribute describes the work better. isGo reports whether the span is
	// from Go's SDK.
	name   func(k *keys, s *spantable.Span, sent string, isGo bool) nameParts
	isHTTP bool // name reads keys.httpTags
}

const (
	anyKind   = ^spantable.KindSet(0)
	notServer = anyKind &^ (1 << spantable.KindServer)
)

// noRule is the number of the rule for spans that keep their names. It is larger than that of any other
// rule, which is its index in nameRules.
const noRule = uint8(math.MaxUint8)

// tagMeanings defines what the tags of spans mean for their names, by kind and label.
type tagMeanings [spantable.Kinds][spantable.MaxLabels]tagMeaning

// tagMeaning is what a tag means for the name of its span.
type tagMeaning struct {
	rule     uint8    // number of the first rule that applies to spans with the tag
	httpPart httpPart // part of HTTP names that the tag is, or noPart
}

// httpPart is an attribute of an HTTP span. partTarget is the route for a server, and the template for a
// client.
type httpPart uint8

const (
	noPart httpPart = iota
	partMethod
	partOldMethod
	partTarget
	partPath
	httpParts // number of parts
)

// newTagMeanings returns what tags mean by the rules in nameRules.
func newTagMeanings() *tagMeanings {
	table := &tagMeanings{}
	for kind := range table {
		meanings := &table[kind]
		for label := range meanings {
			meanings[label].rule = firstRule(spantable.Kind(kind), spantable.Label(label))
		}
		meanings[labelHTTPMethod].httpPart = partMethod
		meanings[labelOldHTTPMethod].httpPart = partOldMethod
		meanings[labelURLPath].httpPart = partPath
	}
	table[spantable.KindServer][labelHTTPRoute].httpPart = partTarget
	table[spantable.KindClient][labelURLTemplate].httpPart = partTarget
	return table
}

// firstRule returns the index in nameRules of the first rule that applies to spans of the given kind
// with the attribute that label stands for. It returns noRule if there is none.
func firstRule(kind spantable.Kind, label spantable.Label) uint8 {
	for i, rule := range nameRules {
		if rule.kinds.Has(kind) && slices.Contains(rule.anyOf, label) {
			return uint8(i)
		}
	}
	return noRule
}

// spanName is the name under which a span is counted.
type spanName struct {
	text  string
	route string // route that only the name contains; "" if there is none
	// isRenamed reports whether text differs from the name that the span was sent with.
	isRenamed bool
}

// nameOf returns the name under which a span is counted: the one that OpenTelemetry's semantic conventions
// define for its attributes, or otherwise the one that was sent. res is the resource of s. The result is
// valid until the next call.
func (k *keys) nameOf(s *spantable.Span, res *resource) spanName {
	sentName := k.request.String(s.Name)
	ruleNumber := k.findNameRule(s)
	if ruleNumber == noRule {
		return spanName{text: sentName}
	}
	rule := &nameRules[ruleNumber]
	if rule.isHTTP {
		k.findHTTPTags(s)
		if k.isHTTPName(sentName) { // the most common case: the sent name follows the conventions
			return spanName{text: sentName}
		}
	}
	parts := rule.name(k, s, sentName, res.isGo)
	isRenamed := parts.first != "" && !parts.equal(sentName)
	if !isRenamed {
		return spanName{text: sentName, route: parts.routeOfServer}
	}
	k.name = parts.appendTo(k.name[:0])
	return spanName{text: spantable.View(k.name), route: parts.routeOfServer, isRenamed: true}
}

// findNameRule returns the index in nameRules of the rule that defines the name of a span, or noRule if there is
// none or if all spans keep their names. If the tags of the span belong to several rules, the first of these rules
// defines the name.
func (k *keys) findNameRule(s *spantable.Span) uint8 {
	keepsNames := k.policy.tagMeanings == nil
	if keepsNames {
		return noRule
	}
	meanings := &k.policy.tagMeanings[s.Kind]
	tags := k.request.TagsOf(s)
	first := noRule // greater than all other numbers of rules
	for i := range tags {
		first = min(first, meanings[tags[i].Label].rule)
	}
	return first
}

// findHTTPTags sets k.httpTags: for each part of the name of an HTTP span, the index of the tag of s that contains the
// part, or noTag. If several tags of s contain the same part, the first one counts.
func (k *keys) findHTTPTags(s *spantable.Span) {
	meanings := &k.policy.tagMeanings[s.Kind]
	tags := k.request.Tags
	k.httpTags = noHTTPTags
	for i := s.TagStart; i < s.TagEnd; i++ {
		part := meanings[tags[i].Label].httpPart
		if part == noPart {
			continue
		}
		isFirst := k.httpTags[part] == noTag
		if isFirst {
			k.httpTags[part] = int32(i)
		}
	}
}

// noTag is the index of a tag that the span does not have.
const noTag = -1

// noHTTPTags is the value of k.httpTags for a span without HTTP tags.
var noHTTPTags = [httpParts]int32{noTag, noTag, noTag, noTag, noTag}

// httpText returns the value of an attribute of the HTTP span that is being named, or "" if the span does not have it.
func (k *keys) httpText(part httpPart) string {
	index := k.httpTags[part]
	if index == noTag {
		return ""
	}
	return k.textOfTag(&k.request.Tags[index])
}

// nameParts is a name in three parts. Most spans have the right name, and comparing the parts with it is
// cheaper than joining them.
type nameParts struct {
	first, separator, last string
	routeOfServer          string // route of an HTTP server that no attribute contains, but the name that was sent
}

// appendTo appends the name to dst.
func (p nameParts) appendTo(dst []byte) []byte {
	dst = append(dst, p.first...)
	dst = append(dst, p.separator...)
	return append(dst, p.last...)
}

// equal reports whether name is the concatenation of the parts.
func (p nameParts) equal(name string) bool {
	rest, hasFirst := strings.CutPrefix(name, p.first)
	rest, hasSeparator := strings.CutPrefix(rest, p.separator)
	return hasFirst && hasSeparator && rest == p.last
}

// withTarget returns the name "operation target". It returns only the operation if one of the two is empty.
func withTarget(operation, target string) nameParts {
	if operation == "" || target == "" {
		return nameParts{first: operation}
	}
	return nameParts{first: operation, separator: " ", last: target}
}

// awsAPI is the RPC system of AWS SDKs. unknownMethod is the value of a method that an
// instrumentation does not know.
const (
	awsAPI        = "aws-api"
	unknownMethod = "_OTHER"
)

// isHTTPName reports whether name, which was sent for an HTTP span, is the one that OpenTelemetry defines
// for its attributes: the method and the route or URL template, such as "GET /users/{id}".
func (k *keys) isHTTPName(name string) bool {
	method := k.sentHTTPMethod()
	isKnownMethod := slices.Contains(httpMethods, method)
	if !isKnownMethod {
		return false
	}
	expectedName := withTarget(method, k.httpText(partTarget))
	return expectedName.equal(name)
}

// httpMethods are the HTTP methods that the conventions know.
var httpMethods = []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "QUERY"}

// sentHTTPMethod returns the method of the HTTP span that is being named, as it was sent, or "" if the
// span has none.
func (k *keys) sentHTTPMethod() string {
	if k.httpTags[partMethod] == noTag {
		return k.httpText(partOldMethod)
	}
	return k.httpText(partMethod)
}

// httpMethod returns the method of the HTTP span that is being named, in upper case. It returns "HTTP"
// for an unknown method, because a client can send any text as its method, and "" if the span has no
// method.
func (k *keys) httpMethod() string {
	sentMethod := k.sentHTTPMethod()
	if sentMethod == "" {
		return ""
	}
	for _, method := range httpMethods {
		if equalFold(sentMethod, method) {
			return method
		}
	}
	return "HTTP"
}

func (k *keys) httpServerName(s *spantable.Span, sent string, isGo bool) nameParts {
	method, route := k.httpMethod(), k.httpText(partTarget)
	if route != "" {
		return withTarget(method, route)
	}
	routeInName := k.routeIn(s, sent, method, isGo)
	parts := withTarget(method, routeInName)
	parts.routeOfServer = routeInName
	return parts
}

func (k *keys) httpClientName(s *spantable.Span, sent string, isGo bool) nameParts {
	method, template := k.httpMethod(), k.httpText(partTarget)
	if template == "" {
		template = k.routeIn(s, sent, method, isGo)
	}
	return withTarget(method, template)
}

func (k *keys) databaseName(s *spantable.Span, sent string, _ bool) nameParts {
	k.selectWithoutResource(s)
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

// isStatement reports whether a name is the database statement that the selected span executes.
func (k *keys) isStatement(name string) bool {
	return strings.Contains(name, " ") && name == k.text(labelDBQuery, labelOldDBStatement)
}

func (k *keys) rpcName(s *spantable.Span, _ string, _ bool) nameParts {
	k.selectWithoutResource(s)
	method, service := k.text(labelRPCMethod), k.text(labelRPCService)
	system := k.text(labelRPCSystem, labelOldRPCSystem)
	switch {
	case method == unknownMethod:
		return nameParts{first: system}
	case method == "" || service == "" || strings.Contains(method, "/"):
		return nameParts{first: method}
	case system == awsAPI:
		return nameParts{first: service, separator: ".", last: method}
	}
	return nameParts{first: service, separator: "/", last: method}
}

func (k *keys) messagingName(s *spantable.Span, _ string, _ bool) nameParts {
	k.selectWithoutResource(s)
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

func (k *keys) genAIName(s *spantable.Span, _ string, _ bool) nameParts {
	k.selectWithoutResource(s)
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

func (k *keys) mcpName(s *spantable.Span, _ string, _ bool) nameParts {
	k.selectWithoutResource(s)
	return withTarget(k.text(labelMCPMethod), k.firstText(labelGenAITool, labelGenAIPrompt))
}

// firstText returns the first value that is not empty among the given attributes of the selected span,
// in the order of labels. It returns "" if there is none.
func (k *keys) firstText(labels ...spantable.Label) string {
	for _, l := range labels {
		if text := k.text(l); text != "" {
			return text
		}
	}
	return ""
}

// isTrue reports whether an attribute of the selected span is the boolean true or the text "true".
func (k *keys) isTrue(label spantable.Label) bool {
	t := k.tag(label)
	if t == nil {
		return false
	}
	switch t.Type {
	case spantable.TypeBool:
		return t.Bits == 1
	case spantable.TypeText:
		return k.textOfTag(t) == "true"
	}
	return false
}

// serverAndPort returns the server that the selected span calls, as "address:port". It returns only the
// address if the span has no port, and "" if it has no address.
func (k *keys) serverAndPort() string {
	address := k.text(labelServerAddress, labelOldPeerName)
	port := k.text(labelServerPort, labelOldPeerPort)
	if address == "" || port == "" {
		return address
	}
	return k.join(address, ":", port)
}

// routeIn returns the route in the name of the HTTP span s, such as /users/{id} in "GET /users/{id}". It returns
// "" if the name contains no path, or if the path is not certainly a route, such as /users/17.
// method is the HTTP method of s. isGo reports whether s is from Go's SDK.
func (k *keys) routeIn(s *spantable.Span, name, method string, isGo bool) string {
	path := pathIn(name, method)
	isPath := path != "" && !strings.ContainsAny(path, "? ")
	if isPath && k.isRoute(s, path, isGo) {
		return path
	}
	return ""
}

// isRoute reports whether path, a path in the name of the HTTP span s, is a route such as /users/{id}, and not
// the path of the request. isGo reports whether s is from Go's SDK.
func (k *keys) isRoute(s *spantable.Span, path string, isGo bool) bool {
	requestPath, isZipkin := k.requestPath(s)
	wasRequested := requestPath != "" && hasEncodedSuffix(requestPath, path) // path is the request path or its end
	hasPlaceholder := strings.ContainsAny(path, "{<[(:*")
	if hasPlaceholder {
		return !wasRequested // a client can request a path with these characters, too
	}
	isServer := s.Kind == spantable.KindServer
	namesRoutes := isServer && (isGo || isZipkin) // others do not name spans after routes without a placeholder
	if !namesRoutes {
		return false
	}
	if wasRequested {
		// A route without a placeholder, such as /health, is also the path of its requests.
		return !hasIdentifier(path) && !k.isNotFound(s)
	}
	return true
}

// isNotFound reports whether an HTTP span has the status 404.
func (k *keys) isNotFound(s *spantable.Span) bool {
	k.selectWithoutResource(s)
	return k.httpStatus() == http.StatusNotFound
}

// pathIn returns the path in the name of an HTTP span: /users in "GET /users", "HTTP GET /users" or
// "/users". method is the HTTP method of the span. pathIn returns "" if the name has another form.
func pathIn(name, method string) string {
	slash := strings.IndexByte(name, '/')
	if slash < 0 {
		return ""
	}
	prefix, path := name[:slash], name[slash:]
	if prefix != "" && !isMethodPrefix(prefix, method) {
		return ""
	}
	return path
}

// isMethodPrefix reports whether prefix is "method " or "HTTP method ", regardless of case.
func isMethodPrefix(prefix, method string) bool {
	const protocol = "HTTP "
	if len(prefix) > len(protocol) && equalFold(prefix[:len(protocol)], protocol) {
		prefix = prefix[len(protocol):]
	}
	word, endsInSpace := strings.CutSuffix(prefix, " ")
	return endsInSpace && equalFold(word, method)
}

// requestPath returns the URL path of the request that an HTTP span describes, or "" if it is unknown.
// isZipkin reports whether the span has the path in http.path, an attribute that only Zipkin uses.
func (k *keys) requestPath(s *spantable.Span) (path string, isZipkin bool) {
	if urlPath := k.httpText(partPath); urlPath != "" {
		return urlPath, false
	}
	k.selectWithoutResource(s) // for k.text; k.httpText does not read the selected span
	if zipkinPath := k.text(labelZipkinPath); zipkinPath != "" {
		return zipkinPath, true
	}
	if target := k.text(labelOldHTTPTarget); target != "" {
		return pathOfURL(target), false
	}
	return pathOfURL(k.text(labelURLFull, labelOldHTTPURL)), false
}

// pathOfURL returns the path of a URL without its query, or the host if the URL has no path. The URL
// can also start with the path, without a scheme and a host.
func pathOfURL(url string) string {
	_, hostAndPath, hasScheme := strings.Cut(url, "://")
	if hasScheme {
		url = hostAndPath
		if slash := strings.IndexByte(hostAndPath, '/'); slash >= 0 {
			url = hostAndPath[slash:]
		}
	}
	path, _, _ := strings.Cut(url, "?")
	return path
}

// hasEncodedSuffix reports whether a path ends in suffix. It decodes bytes of the path such as %2F, and ignores
// the case of ASCII letters, because Zipkin sends names in lower case.
func hasEncodedSuffix(path, suffix string) bool {
	for suffix != "" {
		if path == "" {
			return false
		}
		lastOfPath, encodedLen := lastByte(path)
		lastOfSuffix := suffix[len(suffix)-1]
		if lower(lastOfPath) != lower(lastOfSuffix) {
			return false
		}
		path = path[:len(path)-encodedLen]
		suffix = suffix[:len(suffix)-1]
	}
	return true
}

// lastByte decodes the last byte of a path. encodedLen is 3 if the byte is encoded, such as %2F, and 1 otherwise.
func lastByte(path string) (b byte, encodedLen int) {
	last := path[len(path)-1]
	if len(path) < 3 || path[len(path)-3] != '%' {
		return last, 1
	}
	high, isHighDigit := unhex(path[len(path)-2])
	low, isLowDigit := unhex(last)
	if !isHighDigit || !isLowDigit {
		return last, 1
	}
	return high<<4 | low, 3
}

// hasIdentifier reports whether a segment of a path contains a digit. It ignores segments that are a version, such as v1.
func hasIdentifier(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		isVersion := strings.HasPrefix(segment, "v") && len(segment) <= len("v10")
		if !isVersion && strings.ContainsAny(segment, "0123456789") {
			return true
		}
	}
	return false
}

// equalFold reports whether two texts are equal if the case of ASCII letters is ignored.
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

// unhex returns the value of a hexadecimal digit. It returns false for all other bytes.
func unhex(digit byte) (value byte, ok bool) {
	digit = lower(digit)
	switch {
	case '0' <= digit && digit <= '9':
		return digit - '0', true
	case 'a' <= digit && digit <= 'f':
		return digit - 'a' + 10, true
	}
	return 0, false
}
