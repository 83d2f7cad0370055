// Package work names what a span of OpenTelemetry did: its operation, and the type of its work,
// as the Datadog agent does with the second version of its names. Both readings of OTLP name
// spans so; they differ in which attributes they take, and how, so a span is whatever says its
// attributes by the questions of this package.
//
// It owns no state, any goroutine may call it, and nothing is allocated where there is room.
package work

import "github.com/spanstatsd/spanstatsd/internal/spantable"

// Attribute is what is asked of a span.
type Attribute uint8

// The attributes that names are made of.
const (
	HTTPMethod Attribute = iota
	DBSystem
	MessagingSystem
	MessagingOperation
	RPCSystem
	RPCService
	FaaSProvider
	FaaSName
	FaaSTrigger
	GraphQLType
	Protocol
	Attributes // how many there are
)

// Span is a span that is asked for its attributes. What it has not is empty.
type Span interface{ Said(Attribute) string }

// messaging are the kinds of spans that may be about a message.
var messaging = spantable.KindsOf(
	spantable.KindClient, spantable.KindServer, spantable.KindProducer, spantable.KindConsumer,
)

// AppendOperation appends the name of the kind of work that a span did: http.server.request for
// instance. What the span has said stands in it in lower case.
func AppendOperation(dst []byte, s Span, kind spantable.Kind) []byte {
	isClient, isServer := kind == spantable.KindClient, kind == spantable.KindServer
	isRequest := isClient || isServer
	if isRequest && s.Said(HTTPMethod) != "" {
		return appendRequest(dst, "http", isServer)
	}
	if system := s.Said(DBSystem); system != "" && isClient {
		return join(dst, system, ".query")
	}
	system, done := s.Said(MessagingSystem), s.Said(MessagingOperation)
	if system != "" && done != "" && messaging.Has(kind) {
		return join(dst, system, ".", done)
	}
	if system := s.Said(RPCSystem); system != "" && isRequest {
		if system != "aws-api" || isServer {
			return appendRequest(dst, system, isServer)
		}
		if service := s.Said(RPCService); service != "" {
			return join(dst, "aws.", service, ".request")
		}
		return join(dst, "aws.client.request")
	}
	if provider, name := s.Said(FaaSProvider), s.Said(FaaSName); provider != "" && name != "" && isClient {
		return join(dst, provider, ".", name, ".invoke")
	}
	if trigger := s.Said(FaaSTrigger); trigger != "" && isServer {
		return join(dst, trigger, ".invoke")
	}
	if s.Said(GraphQLType) != "" {
		return join(dst, "graphql.server.request")
	}
	if isRequest {
		return appendRequest(dst, s.Said(Protocol), isServer)
	}
	return append(dst, otherOperation(kind)...)
}

// otherOperation is the name of a span that says no more of itself than its kind.
func otherOperation(kind spantable.Kind) string {
	switch kind {
	case spantable.KindProducer:
		return "Producer"
	case spantable.KindConsumer:
		return "Consumer"
	}
	return "Internal"
}

// appendRequest appends the name of a request by a protocol, if that is known.
func appendRequest(dst []byte, protocol string, isServer bool) []byte {
	if protocol != "" {
		dst = join(dst, protocol, ".")
	}
	if isServer {
		return join(dst, "server.request")
	}
	return join(dst, "client.request")
}

// join appends a name of several parts in lower case.
func join(dst []byte, all ...string) []byte {
	for _, part := range all {
		for i := range len(part) {
			b := part[i]
			if 'A' <= b && b <= 'Z' {
				b += 'a' - 'A'
			}
			dst = append(dst, b)
		}
	}
	return dst
}

// Type is the type of a span's work.
func Type(s Span, kind spantable.Kind) string {
	switch kind {
	case spantable.KindServer:
		return "web"
	case spantable.KindClient:
		if system := s.Said(DBSystem); system != "" {
			return databaseType(system)
		}
		return "http"
	}
	return "custom"
}
