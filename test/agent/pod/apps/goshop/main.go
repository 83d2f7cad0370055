// Command goshop is the Go application of the benchmark: net/http with an in-memory table as its
// database. With an agent, the dd-trace-go integration creates the request span, and the application
// creates two query spans and one more span.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	httptrace "github.com/DataDog/dd-trace-go/contrib/net/http/v2"
	"github.com/DataDog/dd-trace-go/v2/ddtrace/ext"
	"github.com/DataDog/dd-trace-go/v2/ddtrace/tracer"
)

const orders = 1000

type item struct {
	Name  string `json:"name"`
	Price int    `json:"price"`
}

type order struct {
	ID       int    `json:"id"`
	Customer string `json:"customer"`
	Items    []item `json:"items"`
}

var traced = os.Getenv("DD_TRACE_AGENT_URL") != ""

// query runs a database query within a span.
func query(ctx context.Context, statement string, read func()) {
	if traced {
		span, _ := tracer.StartSpanFromContext(ctx, "postgres.query", tracer.ResourceName(statement),
			tracer.SpanType(ext.SpanTypeSQL),
			tracer.ServiceName("shop-db"), tracer.Tag(ext.SpanKind, ext.SpanKindClient),
			tracer.Tag(ext.TargetHost, "10.1.2.3"), tracer.Tag(ext.DBName, "orders"))
		defer span.Finish()
	}
	read()
}

func find(ctx context.Context, id int) (o order) {
	if traced {
		span, inner := tracer.StartSpanFromContext(ctx, "shop.find")
		defer span.Finish()
		ctx = inner
	}
	query(ctx, "SELECT customer FROM orders WHERE id = ?",
		func() { o.ID, o.Customer = id, fmt.Sprint("customer ", id%orders) })
	query(ctx, "SELECT name, price FROM items WHERE number = ?", func() {
		for i := range 8 {
			o.Items = append(o.Items, item{fmt.Sprint("item ", i), i * 100})
		}
	})
	return o
}

func respond(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(find(r.Context(), id)) // the client may have disconnected
}

// many names each request by its path, like badly instrumented applications.
func many(w http.ResponseWriter, r *http.Request) {
	if span, ok := tracer.SpanFromContext(r.Context()); ok {
		span.SetTag(ext.ResourceName, "GET "+r.URL.Path)
	}
	respond(w, r)
}

type mux interface {
	http.Handler
	HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request))
}

func main() {
	var routes mux = http.NewServeMux()
	if traced {
		if err := tracer.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "start tracer:", err)
			os.Exit(1)
		}
		routes = httptrace.NewServeMux()
	}
	for _, when := range []string{"", "/named"} {
		routes.HandleFunc("GET "+when+"/orders/{id}", respond)
		routes.HandleFunc("GET "+when+"/pages/{id}", many)
	}
	server := &http.Server{Addr: "127.0.0.1:" + os.Args[1], Handler: routes}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() {
		<-stop.Done()
		_ = server.Shutdown(context.Background()) // the load has ended before
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	tracer.Stop()
}
