package datadog

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// TestAFieldIsToldByItsNameAlone holds for its name as it is nearly always written.
func TestAFieldIsToldByItsNameAlone(t *testing.T) {
	for f, name := range fieldNames {
		if name != "" && field(fieldTable.Find([]byte(name))) != field(f) {
			t.Errorf("%q is not field %d", name, f)
		}
	}
	for f := range writtenNames {
		for g, name := range fieldNames {
			var b [writtenRoom]byte
			b[0] = msgpack.FixStr | byte(len(name))
			for i := range copy(b[1:], name+"xxxxxxxxxxxxxxx") {
				_ = i
			}
			is := name != "" && f == g
			if writtenNames[f].begins(&b) != is {
				t.Errorf("field %d is written as %q: %v", f, name, !is)
			}
		}
	}
	for number, f := range fieldNumbers {
		if (number == 0) != (f == fieldOther) {
			t.Errorf("number %d is field %d", number, f)
		}
	}
}
