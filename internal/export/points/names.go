package points

import (
	"strconv"
	"strings"
)

// spanKinds are OpenTelemetry's names for span kinds.
var spanKinds = map[string]string{
	"internal": "SPAN_KIND_INTERNAL",
	"server":   "SPAN_KIND_SERVER",
	"client":   "SPAN_KIND_CLIENT",
	"producer": "SPAN_KIND_PRODUCER",
	"consumer": "SPAN_KIND_CONSUMER",
}

// kindUnspecified is the name of an unknown kind.
const kindUnspecified = "SPAN_KIND_UNSPECIFIED"

// kindName returns the name of a kind, or fallback if it is unknown.
func kindName(kind, fallback string) string {
	if name, known := spanKinds[strings.ToLower(kind)]; known {
		return name
	}
	return fallback
}

// The names of a span's status.
const (
	statusUnset = "STATUS_CODE_UNSET"
	statusOK    = "STATUS_CODE_OK"
	statusError = "STATUS_CODE_ERROR"
)

// grpcStatuses are the names of gRPC's status codes.
var grpcStatuses = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
	"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
	"OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// grpcStatus returns the name of a gRPC status code, for example NOT_FOUND for "5". It returns "" if code is not
// the decimal number of a status code.
func grpcStatus(code string) string {
	if code == "" { // the most frequent case, for which ParseUint would allocate an error
		return ""
	}
	n, err := strconv.ParseUint(code, 10, 8)
	if err != nil || n >= uint64(len(grpcStatuses)) {
		return ""
	}
	return grpcStatuses[n]
}

// attributeNames maps tags of Datadog's spans to OpenTelemetry's names, according to the
// Collector's receiver for Datadog traces.
var attributeNames = map[string]string{
	"env": "deployment.environment.name", "version": "service.version",
	"container_id": "container.id", "container_name": "container.name",
	"cloud_provider": "cloud.provider", "region": "cloud.region", "zone": "cloud.availability_zone",
	"kube_cluster_name": "k8s.cluster.name", "kube_namespace": "k8s.namespace.name",
	"pod_name":        "k8s.pod.name",
	"kube_deployment": "k8s.deployment.name", "kube_container_name": "k8s.container.name",
	"http.client_ip": "client.address", "http.version": "network.protocol.version",
	"http.server_name": "server.address", "http.useragent": "user_agent.original",
	"http.method": "http.request.method", "http.status_code": "http.response.status_code",
	"aws.s3.bucket_name": "aws.s3.bucket", "aws.operation": "rpc.method", "aws.service": "rpc.service",
	"db.type": "db.system.name", "db.operation": "db.operation.name", "db.instance": "db.namespace",
	"db.sql.table": "db.collection.name", "db.pool.name": "db.client.connection.pool.name",
}

// currentNames maps older names of attributes to the current ones. Keys of OpenTelemetry's spans
// contain the current names only, whichever name the span used.
var currentNames = map[string]string{
	"http.method": "http.request.method", "http.status_code": "http.response.status_code",
	"db.system": "db.system.name", "db.name": "db.namespace", "db.sql.table": "db.collection.name",
	"db.operation": "db.operation.name", "messaging.destination": "messaging.destination.name",
	"messaging.operation": "messaging.operation.type", "rpc.system": "rpc.system.name",
	"gen_ai.system": "gen_ai.provider.name",
}

// attributeName returns OpenTelemetry's name for a tag, or the tag itself if it has no attribute.
func attributeName(tag string) string {
	if name, known := attributeNames[tag]; known {
		return name
	}
	return tag
}
