// Command record records the requests that `make bench-otlp` counts and forwards. It runs a small web
// application with unmodified OpenTelemetry SDKs and their instrumentation, and keeps the largest trace
// request of each.
//
//	make record-otlp
//
// A recording is a gzip file with the request as sent. For gRPC it starts with the HTTP/2 headers as
// lines. The SDKs are configured not to send details of the recording machine, and a test of package
// recorded checks that. Recordings are replaced only on demand, because their IDs and times differ each
// time.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"
)

// recordings lists the recorded requests. They cover both protocols, small batches and batches of 512
// spans, and the attribute names before and after 2023.
var recordings = []struct {
	name  string
	spans string // maximum spans per batch
	env   []string
	run   func(ctx context.Context, sdks string, env []string) error
}{
	{"go", "512", []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}, goShop},
	{"java", "512", []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}, javaShop},
	{
		"java-all", "512", append([]string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}, manyAttributes...),
		javaShop,
	},
	{"java-gzip", "512", append([]string{
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
	}, manyAttributes...), javaShop},
	{"python", "512", []string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, pythonShop},
	{"node", "512", []string{
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_SEMCONV_STABILITY_OPT_IN=http",
	}, nodeShop},
	{"node-16", "16", []string{
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_SEMCONV_STABILITY_OPT_IN=http",
	}, nodeShop},
	{"node-json", "512", []string{
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
		"OTEL_SEMCONV_STABILITY_OPT_IN=http",
	}, nodeShop},
}

// manyAttributes makes the Java agent write all optional request attributes.
var manyAttributes = []string{
	"OTEL_INSTRUMENTATION_HTTP_SERVER_EMIT_EXPERIMENTAL_TELEMETRY=true",
	"OTEL_INSTRUMENTATION_HTTP_CLIENT_EMIT_EXPERIMENTAL_TELEMETRY=true",
	"OTEL_INSTRUMENTATION_HTTP_SERVER_CAPTURE_REQUEST_HEADERS=" +
		"accept,accept-encoding,referer,x-request-id,x-forwarded-for",
	"OTEL_INSTRUMENTATION_HTTP_SERVER_CAPTURE_RESPONSE_HEADERS=date,content-length",
}

func main() {
	out := flag.String("out", "../../lab/bench/recorded/testdata", "directory for the recordings")
	sdks := flag.String("sdks", "../../bin/otel", "where languages.sh has installed the SDKs")
	only := flag.String("only", "", "one recording")
	flag.Parse()
	log.SetFlags(0)
	for _, r := range recordings {
		if *only != "" && *only != r.name {
			continue
		}
		file := filepath.Join(*out, r.name+".http.gz")
		if err := record(file, r.spans, func(ctx context.Context, env []string) error {
			return r.run(ctx, *sdks, append(env, r.env...))
		}); err != nil {
			log.Fatalf("record %s: %v", r.name, err)
		}
	}
}

// record runs an application against a local receiver and writes the recorded request.
func record(file, spans string, run func(ctx context.Context, env []string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := startReceiver()
	if err != nil {
		return err
	}
	defer r.close()
	stock := startStock()
	defer stock.Close()
	if err := run(ctx, append(settings(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+r.address,
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE="+spans, "STOCK_URL="+stock.URL)); err != nil {
		return err
	}
	return r.write(file)
}

// settings are the settings of every SDK: only traces are sent, in batches as long as possible, with
// the resource of a typical pod and without details of this machine.
func settings() []string {
	return append(os.Environ(),
		"OTEL_SERVICE_NAME=orders", "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none",
		"OTEL_TRACES_EXPORTER=otlp",
		"OTEL_BSP_SCHEDULE_DELAY=10000", "OTEL_BSP_MAX_QUEUE_SIZE=100000",
		fmt.Sprint("OTEL_RESOURCE_ATTRIBUTES=",
			"deployment.environment.name=prod,service.version=1.4.2,host.name=node-17,"+
				"k8s.namespace.name=shop,k8s.deployment.name=orders,",
			"k8s.pod.name=orders-5d9c7f6b8-x2x4q,"+
				"container.id=4bf92f3577b34da6a3ce929d0e0e47364bf92f3577b34da6a3ce929d0e0e4736"),
		"OTEL_NODE_RESOURCE_DETECTORS=env",
		"OTEL_RESOURCE_DISABLED_KEYS=process.command_args,"+
			"process.command_line,process.executable.path,process.pid,os.description",
	)
}
