package spanstatsd

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// AlwaysRecord returns a sampler that records every span, so that span processors see all spans. Spans that the sampler
// inner drops are not exported. Unlike the SDK's AlwaysRecord, it keeps the attributes and the tracestate that inner
// returns for a dropped span. Services that the process calls need the sampling threshold in the tracestate.
func AlwaysRecord(inner sdktrace.Sampler) sdktrace.Sampler { return alwaysRecord{inner} }

type alwaysRecord struct{ inner sdktrace.Sampler }

// ShouldSample returns the result of the inner sampler, with the decision to record the span instead of dropping it.
func (a alwaysRecord) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	result := a.inner.ShouldSample(p)
	if result.Decision == sdktrace.Drop {
		result.Decision = sdktrace.RecordOnly
	}
	return result
}

// Description implements sdktrace.Sampler.
func (a alwaysRecord) Description() string { return "AlwaysRecord{" + a.inner.Description() + "}" }

// SamplerFromEnv returns the sampler that the environment variables OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG
// configure, or the SDK's default if they are not set. Pass the result to AlwaysRecord: the SDK does not read these
// variables if a sampler is set. SamplerFromEnv returns an error if a value is invalid.
func SamplerFromEnv() (sdktrace.Sampler, error) {
	name := strings.ToLower(strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER")))
	if name == "" {
		name = parentBased + "always_on"
	}
	root, err := rootSampler(name)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, parentBased) {
		return sdktrace.ParentBased(root), nil
	}
	return root, nil
}

// parentBased is the prefix of samplers that adopt the decision of the calling service, if there is one.
const parentBased = "parentbased_"

// rootSampler returns the sampler for spans without a parent. name is the value of OTEL_TRACES_SAMPLER, of which
// rootSampler ignores the prefix "parentbased_". It returns an error if name is not supported.
func rootSampler(name string) (sdktrace.Sampler, error) {
	switch strings.TrimPrefix(name, parentBased) {
	case "always_on":
		return sdktrace.AlwaysSample(), nil
	case "always_off":
		return sdktrace.NeverSample(), nil
	case "traceidratio":
		ratio, err := ratioFromEnv()
		if err != nil {
			return nil, err
		}
		return sdktrace.TraceIDRatioBased(ratio), nil
	}
	return nil, fmt.Errorf("read OTEL_TRACES_SAMPLER: %q is not a sampler; set always_on, always_off, traceidratio, "+
		"or one of them after parentbased_", name)
}

// ratioFromEnv returns the ratio in OTEL_TRACES_SAMPLER_ARG, or 1 if the variable is not set.
func ratioFromEnv() (float64, error) {
	text := strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER_ARG"))
	if text == "" {
		return 1, nil
	}
	ratio, err := strconv.ParseFloat(text, 64)
	isRatio := ratio >= 0 && ratio <= 1
	if err != nil || !isRatio {
		return 0, fmt.Errorf("read OTEL_TRACES_SAMPLER_ARG: %q is not a ratio; set a number from 0 to 1", text)
	}
	return ratio, nil
}
