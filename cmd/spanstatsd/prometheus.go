package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	"github.com/spf13/pflag"
)

// scrapedOptions are flags about statistics that a Prometheus scrapes, as far as they are to be read.
type scrapedOptions struct {
	choice     onOff
	addr       string
	histograms string
	bounds     []float64
	dialect    points.Dialect
	dimensions string
}

func (o *scrapedOptions) addFirst(f *pflag.FlagSet) {
	f.Var(&o.choice, "prometheus",
		"serve statistics for Prometheus at /metrics/spans of --http-addr: on (also without a value) "+
			"or off (default: on if no other destination is set)")
	f.Lookup("prometheus").NoOptDefVal = on
}

func (o *scrapedOptions) addRest(f *pflag.FlagSet) {
	f.Var(commandline.Text(&o.addr, "address"), "prometheus-addr",
		"separate listen address for Prometheus scrapes, such as :9127 (default: that of "+
			"--http-addr)")
	f.Var(commandline.Choice(&o.histograms, "both", "both", onlyNative, onlyClassic), "prometheus-histograms",
		"histograms for Prometheus: classic, native over protobuf, or both")
	f.Var(commandline.Parsed(&o.bounds, connectorBounds, "bounds", parseBounds), "prometheus-buckets",
		"upper bounds of classic buckets in seconds, separated by commas; connector for the "+
			"Collector's spanmetrics connector, sdk for OpenTelemetry's HTTP conventions")
	f.Var(commandline.Choice(&o.dialect, points.Spanmetrics, points.Spanmetrics, points.Tempo),
		"prometheus-dialect", "names of metrics and labels for Prometheus: spanmetrics as in the Collector's connector, "+
			"tempo as in Grafana Tempo's metrics-generator")
	f.Var(commandline.Text(&o.dimensions, "names"), "prometheus-dimensions",
		"optional labels for Prometheus, as attribute names: all, none, or a list such as "+
			"http.route,peer.service or all,-peer.service; up to eight can be any span or resource "+
			"attribute, with an optional budget: tenant.id=200")
}

// complete makes the exporter, which it is by itself where no other destination is named.
func (o *scrapedOptions) complete(c *daemon.Config, s *settings, isAlone bool) error {
	choice := o.choice
	if choice == "" {
		choice = off
		if isAlone {
			choice = on
		}
		s.of("prometheus").Effective = string(choice)
	}
	if choice == off {
		return nil
	}
	config := prometheus.Config{
		URL: prometheus.Path, Dialect: o.dialect, NoNative: o.histograms == onlyClassic,
		Exemplars: c.Exemplars,
	}
	if o.histograms != onlyNative {
		config.Bounds = o.bounds
	}
	err := readInto(&config.Dimensions, o.dimensions, points.ParseDimensions)
	if o.addr != "" {
		config.URL = "http://" + o.addr + prometheus.Path
		err = errors.Join(err, check.Address("prometheus-addr", o.addr))
	}
	c.Prometheus, c.PrometheusAddr = prometheus.New(config), o.addr
	return err
}

// onOff is the value of a flag that is on, off, or chosen by others.
type onOff string

func (s *onOff) Set(given string) error {
	switch strings.ToLower(given) {
	case on, "true":
		*s = on
	case off, "false":
		*s = off
	default:
		return fmt.Errorf("%q is none of on, off", given)
	}
	return nil
}

func (s *onOff) String() string { return string(*s) }
func (*onOff) Type() string     { return "on|off" }

const (
	onlyNative  = "native"
	onlyClassic = "classic"
)

const connectorBounds = "connector"

// namedBounds are the default of the Collector's connector, and what OpenTelemetry's conventions
// advise for requests of HTTP.
var namedBounds = map[string][]float64{
	connectorBounds: {.002, .004, .006, .008, .01, .05, .1, .2, .4, .8, 1, 1.4, 2, 5, 10, 15},
	"sdk":           {.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10},
}

// histogram is explicit buckets by their bounds in seconds, nil where buckets are exponential; and whether
// they are sent in milliseconds.
type histogram struct {
	bounds   []float64
	isMillis bool
}

// The kinds of --otlp-histogram.
const (
	exponential = "exponential"
	explicit    = "explicit"
	inMillis    = "explicit-ms"
)

// parseHistogram reads a kind, and of explicit buckets their bounds.
func parseHistogram(given string) (h histogram, err error) {
	kind, bounds, hasBounds := strings.Cut(given, ":")
	switch {
	case given == exponential:
		return h, nil
	case kind != explicit && kind != inMillis:
		return h, fmt.Errorf("%q is none of %s, %s, %s", given, exponential, explicit, inMillis)
	case !hasBounds:
		bounds = connectorBounds
	}
	h.isMillis = kind == inMillis
	h.bounds, err = parseBounds(bounds)
	return h, err
}

// parseBounds reads bounds by a name, or seconds with commas.
func parseBounds(given string) (bounds []float64, err error) {
	if named, is := namedBounds[given]; is {
		return named, nil
	}
	for word := range strings.SplitSeq(given, ",") {
		bound, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number of seconds; give connector, sdk, or seconds with "+
				"commas as 0.01,0.1,1", word)
		}
		bounds = append(bounds, bound)
	}
	return bounds, sketch.CheckBounds(bounds)
}
