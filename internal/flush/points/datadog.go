package points

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// datadog is the dialect of Datadog's tracers, by the contract that they share: one
// metric, whose attributes are all that a key has.
type datadog struct {
	instance string // of the daemon, which only the series of an overflow have
}

func (datadog) metrics() (calls, durations string) { return "", "traces.span.sdk.metrics.duration" }

func (d datadog) ofInstance() string { return d.instance }

func (datadog) key(to *attributes, _ *span.Origin, k *span.Key) {
	to.begin(statusName, topLevelName)
	to.text("service.name", k.Service)
	to.text("span.kind", kindNamed(k.Kind, spanKinds["internal"]))
	to.text("span.name", k.Resource)
	to.text("http.request.method", k.HTTPMethod)
	to.text("http.route", k.HTTPEndpoint)
	to.text("rpc.response.status_code", grpcStatus(k.GRPCStatus))
	if k.HTTPStatus != 0 {
		to.number("http.response.status_code", int64(k.HTTPStatus))
	}
	to.text("datadog.operation.name", k.Operation)
	to.text("datadog.span.type", k.Type)
	to.text("datadog.svc_src", k.ServiceSource)
	if k.Synthetics {
		to.text("datadog.origin", "synthetics")
	}
	if k.TraceRoot != span.TraceRootNotSet {
		to.flag("datadog.is_trace_root", k.TraceRoot == span.TraceRootTrue)
	}
	to.texts("datadog.peer_tags", k.PeerTags)
	for _, tag := range k.AdditionalTags {
		if name, value, isTag := strings.Cut(tag, ":"); isTag {
			to.text(name, value)
		}
	}
}

func (datadog) outcome(to *attributes, isError, isTopLevel bool) {
	status := statusOK
	if isError {
		status = statusError
	}
	to.text(statusName, status)
	to.flag(topLevelName, isTopLevel)
}
