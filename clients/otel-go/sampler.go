package spanstatsd

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// AlwaysRecord returns a sampler that records every span, and samples those that inner samples. Spans that inner drops
// reach span processors, but no exporter. Their attributes and tracestate are those that inner returns. (The SDK's
// AlwaysRecord discards both, so that a threshold in the tracestate does not reach the services that are called.)
func AlwaysRecord(inner sdktrace.Sampler) sdktrace.Sampler { return alwaysRecord{inner} }

type alwaysRecord struct{ inner sdktrace.Sampler }

// ShouldSample implements sdktrace.Sampler.
func (a alwaysRecord) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	result := a.inner.ShouldSample(p)
	if result.Decision == sdktrace.Drop {
		result.Decision = sdktrace.RecordOnly
	}
	return result
}

// Description implements sdktrace.Sampler.
func (a alwaysRecord) Description() string { return "AlwaysRecord{" + a.inner.Description() + "}" }

// SamplerFromEnv returns the sampler that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG define, to be passed to
// AlwaysRecord. The SDK reads these variables only if it is given no sampler. Without them it returns the SDK's
// default, which samples every trace that the caller has not decided about.
func SamplerFromEnv() (sdktrace.Sampler, error) {
	name := strings.ToLower(strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER")))
	if name == "" {
		name = "parentbased_always_on"
	}
	rootName, isParentBased := strings.CutPrefix(name, "parentbased_")
	var root sdktrace.Sampler
	switch rootName {
	case "always_on":
		root = sdktrace.AlwaysSample()
	case "always_off":
		root = sdktrace.NeverSample()
	case "traceidratio":
		ratio, err := ratioFromEnv()
		if err != nil {
			return nil, err
		}
		root = sdktrace.TraceIDRatioBased(ratio)
	default:
		return nil, fmt.Errorf("read OTEL_TRACES_SAMPLER: %q is not a sampler; set always_on, always_off, traceidratio, "+
			"or one of them after parentbased_", name)
	}
	if isParentBased {
		root = sdktrace.ParentBased(root)
	}
	return root, nil
}

// ratioFromEnv returns the ratio in OTEL_TRACES_SAMPLER_ARG, or 1.
func ratioFromEnv() (float64, error) {
	text := strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER_ARG"))
	if text == "" {
		return 1, nil
	}
	ratio, err := strconv.ParseFloat(text, 64)
	if isRatio := ratio >= 0 && ratio <= 1; err != nil || !isRatio {
		return 0, fmt.Errorf("read OTEL_TRACES_SAMPLER_ARG: %q is not a ratio; set a number from 0 to 1", text)
	}
	return ratio, nil
}
