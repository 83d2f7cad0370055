package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// probability is the ProbabilitySampler of the specification. The SDK for Go has one in sdk/trace/x,
// which has no published version.
type probability struct{ threshold uint64 }

// samplerOf returns the sampler that SAMPLER describes. Parent-based sampling is that of the SDK.
func samplerOf(said string) (sdk.Sampler, error) {
	kind, text, _ := strings.Cut(said, ":")
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("read SAMPLER %q: %w", said, err)
	}
	// According to the specification, 4 digits after the leading f digits are enough for rates of a
	// hundredth and more, which need only the upper 16 of the 56 bits.
	_, exponent := math.Frexp(rate)
	cut := 56 - 4*(4-exponent/4)
	own := probability{1<<56 - uint64(math.Round(math.Ldexp(rate, 56-cut)))<<cut}
	if kind == "parent" {
		return sdk.ParentBased(own), nil
	}
	return own, nil
}

func (p probability) Description() string { return "ProbabilitySampler" }

func (p probability) ShouldSample(of sdk.SamplingParameters) sdk.SamplingResult {
	state := trace.SpanContextFromContext(of.ParentContext).TraceState()
	randomness := binary.BigEndian.Uint64(of.TraceID[8:]) & (1<<56 - 1)
	var kept []string
	for _, pair := range strings.Split(state.Get("ot"), ";") {
		if hex, is := strings.CutPrefix(pair, "rv:"); is {
			if explicit, err := strconv.ParseUint(hex, 16, 56); err == nil {
				randomness = explicit
			}
		}
		if pair != "" && !strings.HasPrefix(pair, "th:") {
			kept = append(kept, pair)
		}
	}
	decision := sdk.Drop
	if randomness >= p.threshold {
		decision = sdk.RecordAndSample
		digits := strings.TrimRight(fmt.Sprintf("%014x", p.threshold), "0")
		kept = append([]string{"th:" + digits + strings.Repeat("0", max(0, 1-len(digits)))}, kept...)
	}
	if state = state.Delete("ot"); len(kept) > 0 {
		var err error
		if state, err = state.Insert("ot", strings.Join(kept, ";")); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return sdk.SamplingResult{Decision: decision, Tracestate: state}
}
