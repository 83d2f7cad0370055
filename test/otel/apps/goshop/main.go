// Command goshop is a small web application with the OpenTelemetry SDK for Go. Since nothing can be
// loaded into a Go program, it sets up the SDK itself, as the SDK's documentation shows. Environment
// variables configure the endpoint and the protocol. It listens on LISTEN, or on a free port, and shuts
// down gracefully when its standard input ends.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "goshop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	exporter, err := newExporter(ctx)
	if err != nil {
		return err
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithSyncer(console{}))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:0"))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: shop()}
	go func() { _ = server.Serve(listener) }()
	fmt.Println("listening on", listener.Addr().(*net.TCPAddr).Port)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := server.Shutdown(ctx); err != nil {
		return err
	}
	return provider.Shutdown(ctx)
}

func newExporter(ctx context.Context) (sdk.SpanExporter, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" {
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}

// console writes the trace ID of each span.
type console struct{}

func (console) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	for _, s := range spans {
		fmt.Println("span of", s.SpanContext().TraceID())
	}
	return nil
}

func (console) Shutdown(context.Context) error { return nil }

// shop handles orders, for which it queries a stock service, and is a stock service itself.
func shop() http.Handler {
	client := &http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}
	mux := http.NewServeMux()
	traced(mux, "GET /orders/{number}", func(w http.ResponseWriter, r *http.Request) {
		ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet,
			os.Getenv("STOCK_URL")+"/stock/"+r.PathValue("number"), nil)
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
	traced(mux, "GET /stock/{number}", func(w http.ResponseWriter, r *http.Request) {
		number, _ := strconv.Atoi(r.PathValue("number")) // 0 of what is none
		w.WriteHeader([]int{200, 200, 201, 404, 500}[number%5])
	})
	return mux
}

// traced handles a route within a span. It wraps the handler below the mux, so that it knows the route.
func traced(mux *http.ServeMux, route string, handle http.HandlerFunc) {
	mux.Handle(route, otelhttp.NewHandler(handle, route))
}
