package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// app is an application and the load that two processors can handle.
type app struct {
	name     string
	rate     int           // requests per second
	warm     time.Duration // minimum warm-up
	lives    time.Duration // time that it keeps running after the load, to send data that it does not send on exit
	heaps    []int         // in MiB; 0 for no such limit
	spans    int           // counted spans per request
	tracer   []string      // further environment variables of the tracer
	command  func(places, launch) []string
	variants []variant
}

// launch holds the parameters that a side chooses.
type launch struct {
	variant     variant
	port, heap  int
	collections string // file for Java's garbage collection log
}

// places are the directories of installed and built programs.
type places struct{ tracers, built, extension string }

// Java's tracer sends its statistics every ten seconds but not on exit, unlike the other tracers.
var apps = []app{
	{
		name: "java", rate: 300, warm: 12 * time.Second, lives: 12 * time.Second,
		heaps: []int{48, 64, 128, 256}, spans: 4, command: spring, variants: slices.Concat(variants, otelVariants),
	},
	{
		name: "python", rate: 100, warm: 6 * time.Second, lives: 2 * time.Second, heaps: []int{0}, spans: 3,
		command: flask, variants: variants,
	},
	{
		name: "go", rate: 1000, warm: 3 * time.Second, lives: 2 * time.Second, heaps: []int{0}, spans: 3,
		command: goshop, variants: variants,
	},
	{
		name: "go v0.4", rate: 1000, warm: 3 * time.Second, lives: 2 * time.Second, heaps: []int{0}, spans: 3,
		command: goshop, variants: variants, tracer: []string{"DD_TRACE_AGENT_PROTOCOL_VERSION=0.4"},
	},
}

func spring(p places, l launch) []string {
	command := []string{
		"java", "-XX:-UseDynamicNumberOfCompilerThreads", "-XX:+UseG1GC", fmt.Sprintf("-Xms%dm", l.heap),
		fmt.Sprintf("-Xmx%dm", l.heap), "-Xlog:gc:file=" + l.collections,
	}
	switch l.variant.tracer {
	case datadog:
		command = append(command, "-javaagent:"+filepath.Join(p.tracers, "java/dd-java-agent.jar"))
	case opentelemetry:
		command = append(command, "-javaagent:"+filepath.Join(p.tracers, "otel/opentelemetry-javaagent.jar"))
		if l.variant.computes {
			command = append(command, "-Dotel.javaagent.extensions="+p.extension)
		}
	}
	return append(command, "-cp", filepath.Join(p.tracers, "spring/classes")+":"+filepath.Join(p.tracers,
		"spring/lib/*"), "shop.Shop",
		"--server.address=127.0.0.1", "--server.port="+strconv.Itoa(l.port), "--spring.main.banner-mode=off")
}

func flask(p places, l launch) []string {
	return []string{
		filepath.Join(p.tracers, "python/bin/python"), "test/agent/pod/apps/flask/shop.py",
		strconv.Itoa(l.port),
	}
}

func goshop(p places, l launch) []string {
	return []string{filepath.Join(p.built, "goshop"), strconv.Itoa(l.port)}
}

// cell is a combination of application, heap and load in which the variants are compared.
type cell struct {
	app  app
	heap int
	many bool // each request has a unique name
}

func (c cell) String() string {
	name := c.app.name
	if c.heap != 0 {
		name += fmt.Sprintf(" %d MiB", c.heap)
	}
	if c.many {
		return name + ", high cardinality"
	}
	return name + ", stable"
}

// path returns the URL path of a request.
func (c cell) path(number int) string {
	if c.many {
		return fmt.Sprint("/pages/", number)
	}
	return fmt.Sprint("/orders/", number%100)
}

// namedPath is handled by the same code, but has its own name in the statistics.
func (c cell) namedPath(number int) string { return "/named" + c.path(number) }

// isJava reports whether the cell also has the OpenTelemetry variants.
func (c cell) isJava() bool { return c.app.name == "java" }

func cells() (all []cell) {
	for _, a := range apps {
		for _, heap := range a.heaps {
			all = append(all, cell{a, heap, false}, cell{a, heap, true})
		}
	}
	return all
}
