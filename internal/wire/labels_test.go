package wire

import (
	"reflect"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// The test encodes and decodes keys with one label each.
func TestLabels_EachRoundTrips(t *testing.T) {
	for l := range span.EndOfLists {
		var k span.Key
		if l < span.FirstList {
			*k.Text(l) = "x"
		} else {
			*k.Tags(l) = []string{"x"}
		}
		if got, err := decodeKey(AppendKey(nil, &k)); err != nil || !reflect.DeepEqual(got, k) {
			t.Errorf("%s: %+v became %+v, error %v; see countElements, AppendKey and keyReader.readLabels", l, k,
				got, err)
		}
	}
}
