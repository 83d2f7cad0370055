package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	httptrace "github.com/DataDog/dd-trace-go/contrib/net/http/v2"
	"github.com/DataDog/dd-trace-go/v2/ddtrace/ext"
	"github.com/DataDog/dd-trace-go/v2/ddtrace/tracer"
)

// Sixteen routes, each requested eight times by four concurrent users.
const (
	routes = 16
	rounds = 8
	users  = 4
)

// goShop runs a web application with dd-trace-go and its net/http integration for servers and clients.
// Database spans imitate those of database/sql.
func goShop(ctx context.Context, socket, protocol string) error {
	for _, setting := range append(settings(socket), "DD_TRACE_AGENT_PROTOCOL_VERSION="+protocol) {
		name, value, _ := strings.Cut(setting, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	if err := tracer.Start(tracer.WithStatsComputation(false), tracer.WithLogStartup(false)); err != nil {
		return fmt.Errorf("start tracer: %w", err)
	}
	defer tracer.Stop()
	stock := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "3")
	}))
	defer stock.Close()
	s := &shop{stock: stock.URL, client: httptrace.WrapClient(&http.Client{}), mux: httptrace.NewServeMux()}
	for route := range routes {
		s.mux.HandleFunc(fmt.Sprintf("GET /%s/{id}", nameOf(route)), s.serve)
	}
	app := httptest.NewServer(s.mux)
	defer app.Close()
	if err := visit(ctx, app.URL); err != nil {
		return err
	}
	tracer.Flush()
	return nil
}

func nameOf(route int) string {
	return []string{"orders", "carts", "products", "customers"}[route%4] +
		[]string{"", "/history", "/price", "/photo"}[route/4]
}

// visit requests every route.
func visit(ctx context.Context, url string) error {
	failed := make([]error, users)
	var visiting sync.WaitGroup
	for user := range users {
		visiting.Go(func() {
			for i := user; i < routes*rounds && failed[user] == nil; i += users {
				failed[user] = get(ctx, http.DefaultClient, fmt.Sprintf("%s/%s/%d", url, nameOf(i%routes), i))
			}
		})
	}
	visiting.Wait()
	return errors.Join(failed...)
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

type shop struct {
	stock  string
	client *http.Client
	mux    *httptrace.ServeMux
}

// serve queries a database and another service, and renders a page.
func (s *shop) serve(w http.ResponseWriter, r *http.Request) {
	table, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query(r.Context(), table, strings.HasSuffix(r.URL.Path, "7"))
	status := http.StatusOK
	if err := get(r.Context(), s.client, s.stock+"/"+table); err != nil {
		status = http.StatusBadGateway
	}
	page, _ := tracer.StartSpanFromContext(r.Context(), "template.render", tracer.ResourceName(table+".html"),
		tracer.Measured())
	page.Finish()
	w.WriteHeader(status)
}

// query creates a span like those of database/sql. One in ten fails.
func query(ctx context.Context, table string, fails bool) {
	span, _ := tracer.StartSpanFromContext(ctx, "postgres.query", tracer.ServiceName("shop-db"),
		tracer.SpanType(ext.SpanTypeSQL),
		tracer.ResourceName("SELECT id, state, total FROM "+table+" WHERE id = ? ORDER BY created DESC "+
			"LIMIT 10"),
		tracer.Tag(ext.SpanKind, ext.SpanKindClient), tracer.Tag(ext.Component, "database/sql"),
		tracer.Tag("sql.query_type", "Query"),
		tracer.Tag(ext.DBSystem, "postgresql"), tracer.Tag(ext.DBName, "orders"),
		tracer.Tag(ext.DBUser, "shop"),
		tracer.Tag(ext.TargetHost, "orders.db.internal"), tracer.Tag(ext.TargetPort, 5432))
	if fails {
		span.SetTag(ext.ErrorMsg, "canceling statement due to statement timeout")
		span.SetTag(ext.ErrorType, "*pq.Error")
		span.SetTag(ext.Error, true)
	}
	span.Finish()
}
