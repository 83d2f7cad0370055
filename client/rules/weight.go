package rules

// TagSampleRate is the tag of a trace's root that says how much of the traffic
// the tracer kept before it counted any.
const TagSampleRate = "_sample_rate"

// Weight is how many spans each span of a trace stands for, by its root.
func Weight(root Tags) float64 { return WeightOf(root.Number(TagSampleRate)) }

// WeightOf is the weight at a sample rate, 1 where there is none or it is none.
func WeightOf(rate float64, ok bool) float64 {
	if !ok || rate <= 0 || rate > 1 {
		return 1
	}
	return 1 / rate
}
