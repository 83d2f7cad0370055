package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// goShop runs the same application in this process, with the Go SDK and its net/http instrumentation.
func goShop(ctx context.Context, _ string, env []string) error {
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return fmt.Errorf("make exporter: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter, sdk.WithBlocking()))
	otel.SetTracerProvider(provider)
	client := &http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{number}", func(w http.ResponseWriter, r *http.Request) {
		asked, err := http.NewRequestWithContext(r.Context(), http.MethodGet,
			os.Getenv("STOCK_URL")+"/stock/"+r.PathValue("number"), nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := client.Do(asked)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		answer.Body.Close()
		w.WriteHeader(answer.StatusCode)
	})
	app := httptest.NewServer(otelhttp.NewHandler(mux, "orders"))
	defer app.Close()
	return errors.Join(visit(ctx, app.URL), provider.Shutdown(ctx))
}
