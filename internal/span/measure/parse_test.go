package measure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span/measure"
)

func TestParse_PartsOfFlag(t *testing.T) {
	measures, err := measure.Parse("order.value=order.total,EUR,region,span.name items=items size=body.size,By")
	if err != nil || len(measures) != 3 {
		t.Fatal(measures, err)
	}
	for i, want := range []string{
		"order.value [order.total] EUR [region span.name]", "items [items] 1 []", "size [body.size] By []",
	} {
		m := measures[i]
		if got := fmt.Sprint(m.Name, " ", m.Attributes, " ", m.Unit, " ", m.Labels); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if labels := measure.Labels(measures); !slices.Equal(labels, []string{"region"}) {
		t.Errorf("the labels are %q", labels)
	}
}

// TestParse_Presets checks that all presets can be used together with other measures.
func TestParse_Presets(t *testing.T) {
	flags := append(measure.PresetNames(), "a=b", "c=b", "d=e,s")
	if _, err := measure.Parse(strings.Join(flags, " ")); err != nil {
		t.Error(err)
	}
}

func TestParse_RefusesByName(t *testing.T) {
	for flags, want := range map[string]string{
		"tokens":                              "tokens: it is not one of gen_ai, http.body, messaging.batch",
		"1st=a":                               `"1st" is not the name of a metric`,
		"a=":                                  "the name of the attribute has 0 bytes",
		"a=b,é":                               "is not a unit",
		"a=b,,":                               "the name of a label is empty",
		"a=b a=c":                             "another measure has the name a",
		"gen_ai gen_ai":                       "another measure has the name gen_ai.client.token.usage",
		"gen_ai gen_ai.client.token.usage=a":  "another measure has the name gen_ai.client.token.usage",
		"gen_ai.client.token.usage=a gen_ai":  "another measure has the name gen_ai.client.token.usage",
		"a=a b=a c=a d=a e=a f=a g=a h=a i=a": "9 measures exceed the maximum of 8",
	} {
		if _, err := measure.Parse(flags); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}
