package datadog

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// TestAFieldIsToldByItsNameAlone holds for its name as it is nearly always written.
func TestAFieldIsToldByItsNameAlone(t *testing.T) {
	for f, name := range fieldNames {
		if name != "" && field(fieldTable.Find([]byte(name))) != field(f) {
			t.Errorf("%q is not field %d", name, f)
		}
		written := string([]byte{msgpack.FixStr | byte(len(name))}) + name
		if len(written) > 16 {
			t.Errorf("%q is longer than its ends", written)
		}
		for g := range writtenNames {
			is := name != "" && f == g
			if (writtenNames[g] == spantable.FingerprintOf(written)) != is {
				t.Errorf("field %d is written as %q: %v", g, name, !is)
			}
		}
	}
	for number, f := range fieldNumbers {
		if (number == 0) != (f == fieldOther) {
			t.Errorf("number %d is field %d", number, f)
		}
	}
}
