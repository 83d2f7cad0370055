package points

import (
	"slices"
	"testing"
)

func TestParseHistogram(t *testing.T) {
	for text, want := range map[string]Histogram{
		"exponential": {}, "explicit": {namedBounds["connector"], false},
		"explicit:connector": {namedBounds["connector"], false}, "explicit:sdk": {namedBounds["sdk"], false},
		"explicit:0.01,1": {[]float64{.01, 1}, false}, "explicit-ms:0.01,1": {[]float64{.01, 1}, true},
		"explicit-ms": {namedBounds["connector"], true},
	} {
		got, err := ParseHistogram(text)
		if err != nil || !slices.Equal(got.Bounds, want.Bounds) || got.Millis != want.Millis {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "classic", "explicit:", "explicit:2,1", "exponential:sdk", "explicit:x", "explicit-s",
	} {
		if got, err := ParseHistogram(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
