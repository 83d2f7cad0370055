// Command cost measures the CPU time that a process needs for a span: recorded, recorded and counted with the span
// processor, and recorded and exported over OTLP. It repeats all three in turns, with a daemon as another process, and
// prints medians.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/spanstatsd/spanstatsd/client"
	spanstatsd "github.com/spanstatsd/spanstatsd/clients/otel-go"
	"github.com/spanstatsd/spanstatsd/lab/built"
)

const (
	rounds = 9
	spans  = 100_000
)

var shop = resource.NewSchemaless(attribute.String("service.name", "shop"))

// variant is one way to set up the SDK.
type variant struct {
	name    string
	options func(d *daemon) ([]sdktrace.TracerProviderOption, error)
}

var variants = []variant{
	{"recorded", func(*daemon) ([]sdktrace.TracerProviderOption, error) {
		return []sdktrace.TracerProviderOption{sdktrace.WithSpanProcessor(nothing{})}, nil
	}},
	{"recorded and counted", func(d *daemon) ([]sdktrace.TracerProviderOption, error) {
		p, err := spanstatsd.NewSpanProcessor(spanstatsd.Config{Resource: shop, Client: client.Config{Socket: d.socket}})
		return []sdktrace.TracerProviderOption{
			sdktrace.WithSampler(spanstatsd.AlwaysRecord(sdktrace.NeverSample())), sdktrace.WithSpanProcessor(p),
		}, err
	}},
	{"recorded and exported", func(d *daemon) ([]sdktrace.TracerProviderOption, error) {
		e, err := otlptracehttp.New(context.Background(), otlptracehttp.WithInsecure(), otlptracehttp.WithEndpoint(d.otlp))
		return []sdktrace.TracerProviderOption{sdktrace.WithBatcher(e, sdktrace.WithBlocking())}, err
	}},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run() error {
	d, err := startDaemon()
	if err != nil {
		return err
	}
	defer d.stop()
	costs := make([][]float64, len(variants)) // microseconds of CPU time per span
	for range rounds {
		for i, v := range variants {
			cost, err := measure(v, d)
			if err != nil {
				return fmt.Errorf("measure %q: %w", v.name, err)
			}
			costs[i] = append(costs[i], cost)
		}
	}
	fmt.Printf("%d rounds of %d spans of a server with seven attributes, in turns\n\n", rounds, spans)
	fmt.Println("| in the application, µs of CPU a span | median | lowest to highest |")
	fmt.Println("| --- | --- | --- |")
	var medians []float64
	for i, v := range variants {
		slices.Sort(costs[i])
		medians = append(medians, costs[i][rounds/2])
		fmt.Printf("| %s | %.2f | %.2f to %.2f |\n", v.name, medians[i], costs[i][0], costs[i][rounds-1])
	}
	counting, exporting := medians[1]-medians[0], medians[2]-medians[0]
	fmt.Printf("\nCounting adds 1/%.0f of what exporting adds. Recorded and counted costs 1/%.1f of recorded and exported.\n",
		exporting/max(counting, .001), medians[2]/medians[1])
	return nil
}

// measure returns the CPU time of this process per span, including the shutdown, which sends
// all buffered spans.
func measure(v variant, d *daemon) (float64, error) {
	options, err := v.options(d)
	if err != nil {
		return 0, err
	}
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithResource(shop))...)
	tracer := provider.Tracer("cost")
	before := cpuTime()
	for i := range spans {
		_, s := tracer.Start(context.Background(), "GET /carts/{id}", trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(
				attribute.String("http.request.method", "GET"), attribute.String("http.route", routes[i%len(routes)]),
				attribute.Int("http.response.status_code", 200), attribute.String("url.path", "/carts/7"),
				attribute.String("url.scheme", "http"), attribute.String("user_agent.original", "test"),
				attribute.String("server.address", "shop"),
			))
		s.End()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := provider.Shutdown(ctx); err != nil {
		return 0, err
	}
	return float64((cpuTime() - before).Microseconds()) / spans, nil
}

var routes = []string{"/carts/{id}", "/orders", "/orders/{id}", "/login", "/items/{id}", "/search"}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// nothing is a span processor that does nothing. The SDK makes a copy of each ended span for it.
type nothing struct{}

func (nothing) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (nothing) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (nothing) Shutdown(context.Context) error                  { return nil }
func (nothing) ForceFlush(context.Context) error                { return nil }

// daemon is a running daemon that receives spans on both ways.
type daemon struct {
	dir, socket, otlp string
	process           *exec.Cmd
}

func startDaemon() (*daemon, error) {
	dir, err := os.MkdirTemp("", "cost")
	if err != nil {
		return nil, err
	}
	d := &daemon{dir: dir, socket: filepath.Join(dir, "s"), otlp: "127.0.0.1:24318"}
	program, err := built.Plain(dir, built.Daemon)
	if err != nil {
		return nil, err
	}
	d.process = exec.Command(program, "run", "--socket", d.socket, "--otlp-addr", d.otlp, "--prometheus",
		"--http-addr", "127.0.0.1:0", "--log-level", "error")
	if err := d.process.Start(); err != nil {
		return nil, err
	}
	for range 100 {
		if conn, err := net.Dial("tcp", d.otlp); err == nil {
			return d, conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.stop()
	return nil, fmt.Errorf("start the daemon: nothing listens at %s; free the port", d.otlp)
}

func (d *daemon) stop() {
	_ = d.process.Process.Kill()
	_ = d.process.Wait()
	_ = os.RemoveAll(d.dir)
}
