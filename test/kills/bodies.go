package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protowire"
)

// v04 encodes the request for the agent API v0.4. Each span is a trace of its own.
func (r *request) v04() []byte {
	var b bytes.Buffer
	p := msgpack.NewEncoder(&b)
	p.UseCompactInts(true)
	put := func(values ...any) {
		for _, v := range values {
			_ = p.Encode(v) // writes to memory can't fail
		}
	}
	_ = p.EncodeArrayLen(int(r.spans))
	for range r.spans {
		_ = p.EncodeArrayLen(1)
		_ = p.EncodeMapLen(11)
		put("service", r.service, "name", "http.request", "resource", r.name, "type", "web")
		put("trace_id", rand.Uint64()|1, "span_id", rand.Uint64()|1, "start", time.Now().UnixNano()-1e6,
			"duration", int64(1e6), "error", 0)
		put("meta", map[string]string{"span.kind": "server", "env": "kills"})
		put("metrics", map[string]float64{"_sampling_priority_v1": 1, "_top_level": 1})
	}
	return b.Bytes()
}

// protobuf encodes the request as OTLP protobuf.
func (r *request) protobuf() []byte {
	var scope []byte
	for range r.spans {
		now := uint64(time.Now().UnixNano())
		id := binary.BigEndian.AppendUint64(nil, rand.Uint64()|1)
		b := nested(nil, 1, append(id, id...))
		b = nested(b, 2, id)
		b = nested(b, 5, []byte(r.name))
		b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), 2) // span kind server
		b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), now-1e6)
		b = protowire.AppendFixed64(protowire.AppendTag(b, 8, protowire.Fixed64Type), now)
		scope = nested(scope, 2, b)
	}
	value := nested(nil, 1, []byte(r.service))
	attribute := nested(nested(nil, 1, []byte("service.name")), 2, value)
	return nested(nil, 1, nested(nested(nil, 1, nested(nil, 1, attribute)), 2, scope))
}

// zipkin encodes the request as Zipkin JSON.
func (r *request) zipkin() []byte {
	all := make([]any, r.spans)
	for i := range all {
		id := fmt.Sprintf("%016x", rand.Uint64()|1)
		all[i] = map[string]any{
			"traceId": id, "id": id, "name": r.name, "kind": "SERVER", "duration": 1000,
			"timestamp":     time.Now().UnixMicro() - 1000,
			"localEndpoint": map[string]string{"serviceName": r.service},
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

// nested appends a length-delimited protobuf field: an embedded message or a string.
func nested(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}
