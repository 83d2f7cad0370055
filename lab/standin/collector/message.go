package collector

import "iter"

// Request is an ExportMetricsServiceRequest.
type Request []Resource

// Resource is a ResourceMetrics.
type Resource struct {
	Attributes []Attribute
	Scopes     []Scope
}

// Scope is a ScopeMetrics.
type Scope struct {
	Name, Version string
	Metrics       []Metric
}

// Metric is a sum of integers or an exponential histogram.
type Metric struct {
	Name, Unit  string
	Description string
	IsHistogram bool
	Temporality uint64
	IsMonotonic bool
	Points      []Point
}

// Point is a NumberDataPoint or an ExponentialHistogramDataPoint.
type Point struct {
	Attributes []Attribute
	Start, End uint64
	Value      int64 // value of a number point; all fields below belong to histogram points

	Count, Zeros uint64
	Sum          float64
	Scale        int32
	Offset       int32
	Counts       []uint64 // counts of the positive buckets
	Exemplars    []Exemplar
}

// Exemplar is an exemplar of a histogram point.
type Exemplar struct {
	Time        uint64
	Value       float64 // seconds
	Span, Trace []byte
}

// Attribute is a KeyValue. Its value is a string, bool, int64 or []string.
type Attribute struct {
	Key   string
	Value any
}

// Metrics iterates over the metrics of a request. Each comes with the attributes of its resource.
func (r Request) Metrics() iter.Seq2[[]Attribute, *Metric] {
	return func(yield func([]Attribute, *Metric) bool) {
		for i := range r {
			for j := range r[i].Scopes {
				metrics := r[i].Scopes[j].Metrics
				for k := range metrics {
					if !yield(r[i].Attributes, &metrics[k]) {
						return
					}
				}
			}
		}
	}
}
