// Package work names what a span of OpenTelemetry did: its operation, and the type of its work,
// as the Datadog agent does with the second version of its names. Both readings of OTLP name
// spans so; they differ in which attributes they take, and how, so a span is whatever says its
// attributes by the questions of this package.
//
// It owns no state, any goroutine may call it, and nothing is allocated where there is room.
package work

import "github.com/spanstatsd/spanstatsd/internal/span/spantable"

// Attribute is an attribute that names are made of.
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

// Span returns the values of its attributes, empty for those that it does not have.
type Span interface{ Value(Attribute) string }

// messaging are the kinds of spans that may be about a message.
var messaging = spantable.KindsOf(
	spantable.KindClient, spantable.KindServer, spantable.KindProducer, spantable.KindConsumer,
)

// AppendOperation appends the name of the kind of work that a span did: http.server.request for
// instance. What the span has said stands in it in lower case.
func AppendOperation(dst []byte, s Span, kind spantable.Kind) []byte {
	isClient, isServer := kind == spantable.KindClient, kind == spantable.KindServer
	isRequest := isClient || isServer
	if isRequest && s.Value(HTTPMethod) != "" {
		return appendRequest(dst, "http", isServer)
	}
	if isClient {
		if system := s.Value(DBSystem); system != "" {
			return append(appendLower(dst, system), ".query"...)
		}
	}
	if messaging.Has(kind) {
		if system, done := s.Value(MessagingSystem), s.Value(MessagingOperation); system != "" && done != "" {
			return appendLower(append(appendLower(dst, system), '.'), done)
		}
	}
	if isRequest {
		if system := s.Value(RPCSystem); system != "" {
			return appendCall(dst, s, system, isServer)
		}
	}
	if isClient {
		if provider, name := s.Value(FaaSProvider), s.Value(FaaSName); provider != "" && name != "" {
			return append(appendLower(append(appendLower(dst, provider), '.'), name), ".invoke"...)
		}
	}
	if isServer {
		if trigger := s.Value(FaaSTrigger); trigger != "" {
			return append(appendLower(dst, trigger), ".invoke"...)
		}
	}
	switch {
	case s.Value(GraphQLType) != "":
		return append(dst, "graphql.server.request"...)
	case isRequest:
		return appendRequest(dst, s.Value(Protocol), isServer)
	case kind == spantable.KindProducer:
		return append(dst, "Producer"...)
	case kind == spantable.KindConsumer:
		return append(dst, "Consumer"...)
	}
	return append(dst, "Internal"...) // it says no more of itself than its kind
}

// appendCall appends the name of a remote call.
func appendCall(dst []byte, s Span, system string, isServer bool) []byte {
	if system != "aws-api" || isServer {
		return appendRequest(dst, system, isServer)
	}
	if service := s.Value(RPCService); service != "" {
		return append(appendLower(append(dst, "aws."...), service), ".request"...)
	}
	return append(dst, "aws.client.request"...)
}

// appendRequest appends the name of a request by a protocol, if that is known.
func appendRequest(dst []byte, protocol string, isServer bool) []byte {
	if protocol != "" {
		dst = append(appendLower(dst, protocol), '.')
	}
	if isServer {
		return append(dst, "server.request"...)
	}
	return append(dst, "client.request"...)
}

// appendLower appends what a span has said in lower case.
func appendLower(dst []byte, said string) []byte {
	for i := range len(said) {
		b := said[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		dst = append(dst, b)
	}
	return dst
}

// Type is the type of a span's work.
func Type(s Span, kind spantable.Kind) string {
	switch kind {
	case spantable.KindServer:
		return "web"
	case spantable.KindClient:
		if system := s.Value(DBSystem); system != "" {
			return databaseType(system)
		}
		return "http"
	}
	return "custom"
}

// databaseType is the type of work of a call to a database, whose system has OpenTelemetry's
// present or older name.
func databaseType(system string) string {
	switch system {
	case "actian.ingres", "adabas", "aws.redshift", "cache", "clickhouse", "cloudscape", "cockroachdb",
		"coldfusion", "db2", "derby", "edb", "filemaker", "firebird", "firebirdsql", "firstsql", "h2",
		"h2database", "hanadb", "hsqldb", "ibm.db2", "ibm.informix", "ibm.netezza", "informix", "ingres",
		"instantdb", "interbase", "intersystems.cache", "mariadb", "maxdb", "microsoft.sql_server", "mssql",
		"mysql", "netezza", "oracle", "oracle.db", "other_sql", "pervasive", "pointbase", "postgresql",
		"progress", "redshift", "sap.hana", "sap.maxdb", "softwareag.adabas", "sqlite", "sybase", "teradata",
		"vertica":
		return "sql"
	case "cassandra", "redis", "memcached", "mongodb", "elasticsearch", "opensearch":
		return system
	}
	return "db"
}
