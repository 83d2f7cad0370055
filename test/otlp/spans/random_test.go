package spans

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
)

// names lists attribute names: significant ones, current and old, and others.
var names = []string{
	"http.request.method", "http.method", "http.route", "http.response.status_code", "http.status_code",
	"rpc.system.name", "rpc.system", "rpc.service", "rpc.method", "rpc.grpc.status_code",
	"rpc.response.status_code",
	"db.system.name", "db.system", "db.namespace", "db.name", "db.collection.name", "db.sql.table",
	"db.operation.name", "db.operation",
	"messaging.system", "messaging.destination.name", "messaging.destination", "messaging.operation.name",
	"messaging.operation.type", "messaging.operation",
	"peer.service", "server.address", "net.peer.name", "net.host.name", "network.protocol.name", "url.full",
	"thread.id", "", "http.route.x",
}

func oneOf[T any](rnd *rand.Rand, all ...T) T { return all[rnd.IntN(len(all))] }

func randomText(rnd *rand.Rand) string {
	return oneOf(rnd, "", "a", "b", "GET", "/carts/{id}", "200", "grpc", "OK", "kafka", "é",
		strings.Repeat("long ", 40))
}

func randomValue(rnd *rand.Rand, depth int) *common.AnyValue {
	switch kind := rnd.IntN(12); {
	case kind < 5:
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: randomText(rnd)}}
	case kind < 7:
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: oneOf(rnd, 0, 5, 200, 404, -1,
			1<<40, rnd.Int64())}}
	case kind == 7:
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: rnd.IntN(2) == 0}}
	case kind == 8:
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: oneOf(rnd, 0, 200, 1.5, -7)}}
	case kind == 9:
		return &common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: []byte{0xff, 1}}}
	case kind == 10 && depth < 3:
		values := []*common.AnyValue{randomValue(rnd, depth+1), randomValue(rnd, depth+1)}
		list := &common.ArrayValue{Values: values}
		return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: list}}
	case kind == 11 && depth < 3:
		list := &common.KeyValueList{Values: randomAttributes(rnd, 2, depth+1)}
		return &common.AnyValue{Value: &common.AnyValue_KvlistValue{KvlistValue: list}}
	}
	return &common.AnyValue{}
}

func randomAttributes(rnd *rand.Rand, most, depth int) (all []*common.KeyValue) {
	for range rnd.IntN(most + 1) {
		all = append(all, &common.KeyValue{Key: oneOf(rnd, names...), Value: randomValue(rnd, depth)})
	}
	return all
}

// states lists tracestates, valid and invalid.
var states = []string{
	"", "", "", "ot=th:8", "ot=th:c", "ot=th:0", "ot=th:fff", "ot=rv:80000000000000",
	"ot=rv:7fffffffffffff;th:4", "vendor=x", "vendor=x, ot=p:8;th:2;r:62 ,,other=y",
	"ot=th:8;th:8", "what", "ot=th:", "ot=th:8,ot=th:c", "a@b=c,ot=th:a8", "ot=rv:1;th:8",
	"ot=th:fff;rv:7fffffffffffff", "ot=th:8;th:8,x=y",
	strings.Repeat("x=y,", 31) + "ot=th:8", strings.Repeat("x=y,", 33),
	"ot=x:" + strings.Repeat("y", 245),
	"a=" + strings.Repeat("y", 250) + ",b=" + strings.Repeat("y", 250) + ",c=" + strings.Repeat("y", 250) +
		",d=" + strings.Repeat("y", 245),
}

func randomSpan(rnd *rand.Rand) *trace.Span {
	start := uint64(1_790_000_000_000_000_000) + rnd.Uint64N(5e9)
	s := &trace.Span{
		// Traces of one request share their IDs, half of which have low randomness.
		TraceId: binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, rnd.Uint64N(2)),
			rnd.Uint64N(8)<<53|rnd.Uint64N(2)<<60),
		SpanId: binary.BigEndian.AppendUint64(nil, rnd.Uint64()), TraceState: oneOf(rnd, states...),
		Name: randomText(rnd), Kind: trace.Span_SpanKind(rnd.IntN(7)), StartTimeUnixNano: start,
		EndTimeUnixNano: start + rnd.Uint64N(1<<rnd.IntN(34)), Attributes: randomAttributes(rnd, 12, 0),
		DroppedAttributesCount: rnd.Uint32N(2), Flags: oneOf[uint32](rnd, 0, 1, 0x301),
	}
	switch rnd.IntN(8) {
	case 0:
		s.EndTimeUnixNano = start - rnd.Uint64N(1e9)
	case 1:
		s.TraceId, s.SpanId = nil, nil
	}
	if rnd.IntN(2) == 0 {
		s.ParentSpanId = binary.BigEndian.AppendUint64(nil, rnd.Uint64N(2))
	}
	if rnd.IntN(2) == 0 {
		s.Status = &trace.Status{Message: randomText(rnd), Code: trace.Status_StatusCode(rnd.IntN(4))}
	}
	if rnd.IntN(4) == 0 {
		s.Events = []*trace.Span_Event{{
			TimeUnixNano: start, Name: randomText(rnd),
			Attributes: randomAttributes(rnd, 3, 0),
		}}
		s.Links = []*trace.Span_Link{{
			TraceId: s.TraceId, SpanId: s.SpanId, TraceState: s.TraceState,
			Attributes: randomAttributes(rnd, 3, 0),
		}}
	}
	return s
}

// randomRequest returns a request with a few resources, some of them equal.
func randomRequest(rnd *rand.Rand) *trace.TracesData {
	request := &trace.TracesData{}
	for range rnd.IntN(4) {
		r := &trace.ResourceSpans{
			Resource:  &resource.Resource{Attributes: randomAttributes(rnd, 2, 0)},
			SchemaUrl: randomText(rnd),
		}
		if rnd.IntN(5) > 0 {
			r.Resource.Attributes = append(r.Resource.Attributes,
				text("service.name", fmt.Sprint("shop-", rnd.IntN(3))),
				text("telemetry.sdk.version", "1.2.3"),
				text(oneOf(rnd, "deployment.environment.name", "deployment.environment"), "prod"))
		}
		for range rnd.IntN(3) {
			scope := &trace.ScopeSpans{Scope: &common.InstrumentationScope{
				Name:       randomText(rnd),
				Attributes: randomAttributes(rnd, 2, 0),
			}}
			for range rnd.IntN(12) {
				scope.Spans = append(scope.Spans, randomSpan(rnd))
			}
			r.ScopeSpans = append(r.ScopeSpans, scope)
		}
		request.ResourceSpans = append(request.ResourceSpans, r)
	}
	return request
}

func text(name, value string) *common.KeyValue {
	return &common.KeyValue{
		Key:   name,
		Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}},
	}
}

// resourceOf returns the resource of a process, as written by an SDK.
func resourceOf(service, instance string) *resource.Resource {
	return &resource.Resource{Attributes: []*common.KeyValue{
		text("service.name", service), text("service.instance.id", instance),
		text("telemetry.sdk.name", "opentelemetry"),
		text("telemetry.sdk.language", "java"), text("telemetry.sdk.version", "1.52.0"),
		text("os.type", "linux"),
	}}
}
