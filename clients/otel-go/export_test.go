package spanstatsd

import (
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// OriginOf returns the origin that a processor sends for a resource.
func OriginOf(res *resource.Resource) client.Origin { return originOf(encodeResource(res)) }

// KeyOf returns the labels of a span, whether it is an error, and whether it is a top-level span.
func KeyOf(s sdktrace.ReadOnlySpan) (key client.Key, isError, isTopLevel bool) {
	return keyOf(s, false)
}

// KeyForMetrics returns the labels of a span with the attributes of the conventions' metrics.
func KeyForMetrics(s sdktrace.ReadOnlySpan) client.Key {
	key, _, _ := keyOf(s, true)
	return key
}

func keyOf(s sdktrace.ReadOnlySpan, metricAttributes bool) (key client.Key, isError, isTopLevel bool) {
	policy, err := newPolicy(metricAttributes)
	if err != nil {
		panic(err)
	}
	r := newReader(policy, OriginOf(s.Resource()).Service, s.Resource())
	_, flags := r.read(s)
	return *r.labels(), flags&span.Error != 0, flags&span.TopLevel != 0
}

// CacheBytes is the maximum memory of encoded keys.
const CacheBytes = cacheShards * 2 * maxShardBytes
