package otlp

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkHandOn measures a request with 20 spans from an SDK to the upstream and back. The result includes the
// time of the SDK and the upstream in the same process.
func BenchmarkHandOn(b *testing.B) {
	for name, isGRPC := range map[string]bool{"HTTP": false, "gRPC": true} {
		b.Run(name, func(b *testing.B) {
			to := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if isGRPC {
					w.Header().Set("Content-Type", "application/grpc")
					w.Header()["Trailer"] = []string{"Grpc-Status"}
					_, _ = w.Write(make([]byte, 5))
					w.Header().Set("Grpc-Status", "0")
				}
			}))
			to.Config.Protocols = &http.Protocols{}
			to.Config.Protocols.SetHTTP1(!isGRPC)
			to.Config.Protocols.SetUnencryptedHTTP2(isGRPC)
			to.Start()
			defer to.Close()
			url := to.URL
			body, path, media := exported("shop", 0, 20, 5), "/v1/traces", "application/x-protobuf"
			if isGRPC {
				url = strings.Replace(url, "http:", "grpc:", 1)
				body, path, media = framed(body,
					false), "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "application/grpc"
			}
			h := newHarness(b, forwardTo(b, url))
			client := h.client(isGRPC)
			b.ReportAllocs()
			for b.Loop() {
				r, _ := http.NewRequest(http.MethodPost, "http://x"+path, bytes.NewReader(body))
				r.Header = http.Header{
					"Content-Type":         {media},
					"User-Agent":           {"OTel OTLP Exporter Go/1.38.0"},
					"Te":                   {"trailers"},
					"Grpc-Accept-Encoding": {"gzip"}, "Grpc-Timeout": {"9999m"}, "X-Tenant": {"a"},
				}
				answer, err := client.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if answer.StatusCode != http.StatusOK || isGRPC && answer.Trailer.Get("Grpc-Status") != "0" {
					b.Fatalf("%v %v", answer.Status, answer.Trailer)
				}
			}
		})
	}
}
