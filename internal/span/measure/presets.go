package measure

import (
	"maps"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// presets are the measures that have a name in --measure.
var presets = map[string][]Measure{
	"gen_ai":          genAI(),
	"http.body":       httpBody(),
	"messaging.batch": {messagingBatch},
}

// PresetNames returns the names of all presets.
func PresetNames() []string { return slices.Sorted(maps.Keys(presets)) }

const (
	tokens    = "{token}"
	tokenType = "gen_ai.token.type"

	genAIOperation = "gen_ai.operation.name"
)

// genAILabels are the labels of metrics about generative AI, according to OpenTelemetry's conventions.
var genAILabels = []string{
	genAIOperation, "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model", "server.address",
}

// genAI returns the measures of calls of models: the used tokens, and the duration. Cached and reasoning tokens have
// metrics of their own, because they are parts of the input and output tokens.
func genAI() []Measure {
	measures := []Measure{
		{
			Name: "gen_ai.client.token.usage", Help: "Tokens that calls of models used.",
			Attributes: []string{"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"},
			Label:      Label{tokenType, "input"},
		},
		{
			Name: "gen_ai.client.token.usage", Help: "Tokens that calls of models used.",
			Attributes: []string{"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"},
			Label:      Label{tokenType, "output"},
		},
		{
			Name: "gen_ai.client.inference.usage.cache_read.input_tokens", Help: "Input tokens that were read from a cache.",
			Attributes: []string{"gen_ai.usage.cache_read.input_tokens"},
		},
		{
			Name: "gen_ai.client.inference.usage.cache_write.input_tokens", Help: "Input tokens that were written to a cache.",
			Attributes: []string{"gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens"},
		},
		{
			Name: "gen_ai.client.inference.usage.reasoning.output_tokens", Help: "Output tokens that models used for reasoning.",
			Attributes: []string{"gen_ai.usage.reasoning.output_tokens"},
		},
	}
	for i := range measures {
		measures[i].Unit, measures[i].Labels, measures[i].Bounds = tokens, genAILabels, powersOfFour
	}
	return append(measures, Measure{
		Name: "gen_ai.client.operation.duration", Unit: "s", Help: "Durations of calls of models in seconds.",
		Requires: genAIOperation,
		Kinds:    spantable.KindsOf(spantable.KindClient, spantable.KindInternal),
		Labels:   append(slices.Clone(genAILabels), "error.type"), Bounds: durationBounds,
	})
}

// httpBody returns the measures of HTTP request and response bodies, in spans of servers and of clients.
func httpBody() (measures []Measure) {
	for _, side := range [...]struct {
		name string
		kind spantable.Kind
	}{{"server", spantable.KindServer}, {"client", spantable.KindClient}} {
		for _, direction := range [...]string{"request", "response"} {
			measures = append(measures, Measure{
				Name: "http." + side.name + "." + direction + ".body.size", Unit: "By",
				Help: "HTTP " + direction + " body sizes in bytes, in spans of " + side.name + "s.",
				Attributes: []string{
					"http." + direction + ".body.size", "http." + direction + "_content_length",
				},
				Kinds:  spantable.KindsOf(side.kind),
				Bounds: powersOfFour,
			})
		}
	}
	return measures
}

var messagingBatch = Measure{
	Name: "messaging.batch.message_count", Unit: "{message}",
	Help:       "Messages per batch that was sent, received or processed.",
	Attributes: []string{"messaging.batch.message_count"},
	Bounds:     powersOfFour,
}
