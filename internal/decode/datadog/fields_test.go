package datadog

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// It checks both ways to find a field: by its name, and by the most common encoding of its name.
func TestField_FoundByName(t *testing.T) {
	for f, name := range fieldNames {
		if name != "" && field(fieldTable.Find([]byte(name))) != field(f) {
			t.Errorf("%q is not field %d", name, f)
		}
		written := string([]byte{msgpack.FixStr | byte(len(name))}) + name
		if len(written) > 16 {
			t.Errorf("%q has more than 16 bytes, so its middle is not compared", written)
		}
		for g := range encodedNames {
			is := name != "" && f == g
			if (encodedNames[g] == spantable.FingerprintOf(written)) != is {
				t.Errorf("field %d is written as %q: %v", g, name, !is)
			}
		}
	}
	for number, f := range v1Fields {
		if (number == 0) != (f == fieldOther) {
			t.Errorf("number %d is field %d", number, f)
		}
	}
}
