// Command chain is one of several services that call one another, with the OpenTelemetry SDK for Go. It
// responds to a request after it has called NEXT_URL, if that is set.
//
// SAMPLER selects the sampler: "probability:0.1" decides about each span, regardless of the parent's
// decision, and "parent:0.1" decides only about root spans. The n-th trace started here has the first
// 16 bytes of the SHA-256 of n (in decimal) as its ID, so that a test also knows unsampled traces. The
// service shuts down gracefully when its standard input ends.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "chain:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	sampler, err := samplerOf(os.Getenv("SAMPLER"))
	if err != nil {
		return err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return err
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithSampler(sampler),
		sdk.WithIDGenerator(&ids{}))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: otelhttp.NewHandler(answer(os.Getenv("NEXT_URL")), "answer")}
	go func() { _ = server.Serve(listener) }() // returns after Shutdown
	fmt.Println("listening on", listener.Addr().(*net.TCPAddr).Port)
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, server.Shutdown(ctx), provider.Shutdown(ctx))
}

// answer responds after the next service has responded, if there is one.
func answer(next string) http.Handler {
	client := &http.Client{Transport: otelhttp.NewTransport(&http.Transport{MaxIdleConnsPerHost: 16})}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next == "" {
			return
		}
		ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, next, nil)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		answer, err := client.Do(ask)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		_, _ = io.Copy(io.Discard, answer.Body) // otherwise the client span would not end
		answer.Body.Close()
		w.WriteHeader(answer.StatusCode)
	})
}

// ids generates predictable trace IDs and random span IDs.
type ids struct{ begun atomic.Int64 }

func (i *ids) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	sum := sha256.Sum256([]byte(strconv.FormatInt(i.begun.Add(1)-1, 10)))
	copy(id[:], sum[:])
	return id, i.NewSpanID(ctx, id)
}

func (i *ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
