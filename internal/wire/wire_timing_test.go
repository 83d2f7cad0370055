package wire

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// An operation of these benchmarks is one snapshot.

const timedBatch = 256

func timedFrame(numbered bool) []byte {
	key := AppendKey(nil, &span.Key{
		Service: "checkout", Operation: "http.request", Resource: "GET /orders/{id}", Type: "web",
		Kind:         "server",
		HTTPStatus:   200,
		HTTPMethod:   "GET",
		HTTPEndpoint: "/orders/{id}",
		TraceRoot:    span.TraceRootTrue,
	})
	frame := BeginSpans(nil)
	for i := range timedBatch {
		if numbered {
			frame = AppendNumbered(frame, uint32(i*3), 12_345_678, 1_800_000_000_000_000_000, span.TopLevel,
				1)
		} else {
			frame = AppendWhole(frame, key, 12_345_678, 1_800_000_000_000_000_000, span.TopLevel, 1)
		}
	}
	EndSpans(frame, 0, timedBatch)
	return frame
}

func BenchmarkWalkSpans(b *testing.B) {
	for _, numbered := range []bool{false, true} {
		name := "whole"
		if numbered {
			name = "numbered"
		}
		_, body, _ := Split(timedFrame(numbered)[HeaderLen:])
		b.Run(name, func(b *testing.B) {
			var s Snapshot
			for n := 0; n < b.N; n += timedBatch {
				w, _ := WalkSpans(body)
				for w.Next(&s) {
				}
			}
		})
	}
}

func BenchmarkAppendWhole(b *testing.B) {
	key := make([]byte, 60)
	var dst []byte
	for n := 0; n < b.N; n += timedBatch {
		dst = BeginSpans(dst[:0])
		for range timedBatch {
			dst = AppendWhole(dst, key, 12_345_678, 1_800_000_000_000_000_000, span.TopLevel, 1)
		}
		EndSpans(dst, 0, timedBatch)
	}
}

func BenchmarkAppendNumbered(b *testing.B) {
	var dst []byte
	for n := 0; n < b.N; n += timedBatch {
		dst = BeginSpans(dst[:0])
		for i := range timedBatch {
			dst = AppendNumbered(dst, uint32(i), 12_345_678, 1_800_000_000_000_000_000, span.TopLevel, 1)
		}
		EndSpans(dst, 0, timedBatch)
	}
}

func BenchmarkAppendKey(b *testing.B) {
	k := span.Key{
		Service: "checkout", Operation: "http.request", Resource: "GET /orders/{id}", Type: "web",
		Kind:         "server",
		HTTPStatus:   200,
		HTTPMethod:   "GET",
		HTTPEndpoint: "/orders/{id}",
		TraceRoot:    span.TraceRootTrue,
		PeerTags:     []string{"db.name:orders", "peer.service:postgres"},
	}
	var dst []byte
	for n := 0; n < b.N; n++ {
		dst = AppendKey(dst[:0], &k)
	}
}

func BenchmarkReadKey(b *testing.B) {
	raw := AppendKey(nil, &span.Key{
		Service: "service-0123456789ab", Operation: "operation.0123456789ab",
		Resource: "GET /resource/0123456789ab", Type: "http", Kind: "client",
		TraceRoot: span.TraceRootFalse, PeerTags: []string{"peer.hostname:host-0123456789ab"},
	})
	var key span.Key
	b.ReportAllocs()
	for b.Loop() {
		if err := ReadKey(&key, raw); err != nil {
			b.Fatal(err)
		}
	}
}
