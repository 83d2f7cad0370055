// Package work derives the operation and the type of an OpenTelemetry span, like the Datadog agent
// with the second version of its span names. Both semantic modes of OTLP use it. The modes differ
// in which attributes they read, so the package asks the caller for the values of attributes
// through the interface Span.
//
// The package has no state. It is safe for concurrent use, and allocates nothing if dst has enough
// capacity.
package work

import "github.com/spanstatsd/spanstatsd/internal/span/spantable"

// Attribute is an attribute that operations and types depend on.
type Attribute uint8

// All attributes that the package asks for.
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
	Attributes // number of attributes
)

// Span returns the value of an attribute of a span, or an empty string if the span does not have
// it.
type Span interface{ Value(Attribute) string }

// messaging contains the kinds of spans whose messaging attributes are read.
var messaging = spantable.KindsOf(
	spantable.KindClient, spantable.KindServer, spantable.KindProducer, spantable.KindConsumer,
)

// AppendOperation appends the operation of a span to dst, such as http.server.request. The attributes
// of s and its kind determine the operation. Values of attributes in it are in lower case.
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
		system, operation := s.Value(MessagingSystem), s.Value(MessagingOperation)
		if system != "" && operation != "" {
			dst = append(appendLower(dst, system), '.')
			return appendLower(dst, operation)
		}
	}
	if isRequest {
		if system := s.Value(RPCSystem); system != "" {
			return appendRPC(dst, s, system, isServer)
		}
	}
	if isClient {
		if provider, name := s.Value(FaaSProvider), s.Value(FaaSName); provider != "" && name != "" {
			dst = append(appendLower(dst, provider), '.')
			dst = appendLower(dst, name)
			return append(dst, ".invoke"...)
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
	return append(dst, "Internal"...)
}

// appendRPC appends the operation of a remote procedure call to dst, such as grpc.server.request.
// system is the RPC system, such as grpc. For a client of AWS, the operation contains the service, as
// in aws.s3.request.
func appendRPC(dst []byte, s Span, system string, isServer bool) []byte {
	if system != "aws-api" || isServer {
		return appendRequest(dst, system, isServer)
	}
	service := s.Value(RPCService)
	if service == "" {
		return append(dst, "aws.client.request"...)
	}
	dst = append(dst, "aws."...)
	dst = appendLower(dst, service)
	return append(dst, ".request"...)
}

// appendRequest appends the operation of a request to dst, such as http.server.request. If protocol is
// empty, this is only server.request or client.request.
func appendRequest(dst []byte, protocol string, isServer bool) []byte {
	if protocol != "" {
		dst = append(appendLower(dst, protocol), '.')
	}
	if isServer {
		return append(dst, "server.request"...)
	}
	return append(dst, "client.request"...)
}

// appendLower appends text with ASCII letters in lower case.
func appendLower(dst []byte, text string) []byte {
	for i := range len(text) {
		b := text[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		dst = append(dst, b)
	}
	return dst
}

// Type returns the type of a span, such as web or sql.
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

// databaseType returns the type of a call to a database system: "sql", the name of the system, or "db"
// for a system that is not in the list. system is the current or an older OpenTelemetry name.
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
