package points

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
)

// withMeasures is a dialect with the metrics of measures, in addition to those of spans. Each series of a measure is a
// histogram of values. Its attributes are those of the spans, or those that the measure names.
type withMeasures struct {
	dialect                  // dialect of spans, and of measures that name no labels
	measures []measureSeries // by the number of the measure, minus one
	last     *measureSeries  // measure of the last key; nil for a key of spans
	all      []Metric        // metrics of spans, then those of measures
}

// measureSeries defines the series of one measure.
type measureSeries struct {
	metric      int           // index in withMeasures.all
	dialect     dialect       // writes the attributes
	names       []string      // permitted names of attributes, as encoded; nil for all
	label       measure.Label // attribute that all series have
	hasNoStatus bool
}

// withMeasuresOf returns d with the configured measures.
func (c *Config) withMeasuresOf(d dialect) dialect {
	if len(c.Measures) == 0 || c.Graph != nil {
		return d
	}
	w := &withMeasures{dialect: d, all: slices.Clone(d.metrics())}
	for i := range c.Measures {
		m := &c.Measures[i]
		series := measureSeries{metric: w.addMetric(c.metricOfMeasure(m)), dialect: d, label: m.Label}
		if m.Labels != nil {
			series.dialect = &spanmetrics{dimensions: Dimensions{names: m.Labels}, instance: c.Instance}
			series.hasNoStatus = !m.HasLabel(statusName)
			for _, name := range append([]string{"service.name", instanceName}, m.Labels...) {
				series.names = append(series.names, c.format().nameOf(name))
			}
		}
		w.measures = append(w.measures, series)
	}
	if sdkMetrics, isConventions := d.(*conventions); isConventions {
		sdkMetrics.omitMetricsOf(c.Measures)
	}
	return w
}

// CheckMeasures returns an error if measures with different names have the same name in Prometheus, or if a name is
// reserved for metrics of spans. It checks this even if metrics are sent over OTLP, because a Prometheus that stores them
// renames them.
func CheckMeasures(measures []measure.Measure) error {
	measureOf := map[string]*measure.Measure{} // by the name in Prometheus
	for i := range measures {
		m := &measures[i]
		name := prometheusNameOf(m)
		other, isUsed := measureOf[name]
		switch {
		case isUsed && other.Name != m.Name:
			return fmt.Errorf("check --measure: %s and %s have the same name in Prometheus, %s; rename one of them",
				other.Name, m.Name, name)
		case strings.HasPrefix(name, prefixOfSpanMetrics):
			return fmt.Errorf("check --measure: the name %s is reserved for metrics of spans; choose one that does not begin "+
				"with traces", m.Name)
		}
		measureOf[name] = m
	}
	return nil
}

// prometheusNameOf returns the name that the metric of a measure has in Prometheus.
func prometheusNameOf(m *measure.Measure) string { return prometheusName(m.Name, unitSuffix(m.Unit)) }

// prometheusName returns the name that a metric has in Prometheus. unit is a word such as "seconds", or "".
func prometheusName(name, unit string) string { return labels{}.metricName(name, unit) }

// prefixOfSpanMetrics begins the names of all metrics of spans, edges and objectives, except for those that the
// conventions define.
const prefixOfSpanMetrics = "traces_"

// metricOfMeasure returns the metric of a measure, named by the rules of the format.
func (c *Config) metricOfMeasure(m *measure.Measure) Metric {
	return Metric{
		Durations: c.format().metricName(m.Name, unitSuffix(m.Unit)),
		Unit:      m.Unit, IsMeasure: true, Help: m.Help, Bounds: m.Bounds,
	}
}

// addMetric adds the metric of a measure to w.all, and returns its index. It replaces a metric with the same name, which
// is that of another measure, or one that the conventions define for spans.
func (w *withMeasures) addMetric(m Metric) int {
	hasSameName := func(other Metric) bool { return other.Durations == m.Durations } // the name of the histogram
	if index := slices.IndexFunc(w.all, hasSameName); index >= 0 {
		w.all[index] = m
		return index
	}
	w.all = append(w.all, m)
	return len(w.all) - 1
}

func (w *withMeasures) metrics() []Metric { return w.all }

// metricOf implements dialect.
func (w *withMeasures) metricOf(k *span.Key) int {
	if k.Measure == 0 {
		return w.dialect.metricOf(k)
	}
	return w.measures[k.Measure-1].metric
}

// writeKey implements dialect.
func (w *withMeasures) writeKey(to *attributes, origin *span.Origin, k *span.Key) {
	if k.Measure == 0 {
		w.last = nil
		w.dialect.writeKey(to, origin, k)
		return
	}
	w.last = &w.measures[k.Measure-1]
	to.permitted = w.last.names
	w.last.dialect.writeKey(to, origin, k)
	to.permitted = nil
	to.addText(w.last.label.Name, w.last.label.Value)
}

// isOK implements dialect.
func (w *withMeasures) isOK(origin *span.Origin, k *span.Key) bool {
	if k.Measure == 0 {
		return w.dialect.isOK(origin, k)
	}
	series := &w.measures[k.Measure-1]
	return !series.hasNoStatus && series.dialect.isOK(origin, k)
}

// writeStatus implements dialect.
func (w *withMeasures) writeStatus(to *attributes, s status) {
	switch {
	case w.last == nil:
		w.dialect.writeStatus(to, s)
	case !w.last.hasNoStatus:
		w.last.dialect.writeStatus(to, s)
	}
}

// unitWords are the words for UCUM units in names of Prometheus metrics.
var unitWords = map[string]string{
	"1": "", "%": "percent",
	"d": "days", "h": "hours", "min": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds",
	"By": "bytes", "KiBy": "kibibytes", "MiBy": "mebibytes", "GiBy": "gibibytes", "TiBy": "tebibytes",
	"kBy": "kilobytes", "MBy": "megabytes", "GBy": "gigabytes", "TBy": "terabytes",
	"m": "meters", "V": "volts", "A": "amperes", "J": "joules", "W": "watts", "g": "grams", "Cel": "celsius", "Hz": "hertz",
}

// unitSuffix returns the word for a unit in names of metrics. Annotations such as {token}, and "1" for numbers without a
// unit, have none. An unknown unit stands for itself.
func unitSuffix(unit string) string {
	if word, isKnown := unitWords[unit]; isKnown {
		return word
	}
	if strings.HasPrefix(unit, "{") {
		return ""
	}
	return unit
}
