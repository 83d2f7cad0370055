package registry

import (
	"fmt"
	"testing"
)

func TestABloomFilterHasAllThatWasAddedAndLittleElse(t *testing.T) {
	var filter bloomFilter
	const added = 2000
	for i := range added {
		filter.add(scope(i%5), fmt.Sprintf("label-%08d", i))
		filter.add(scope(i%5), fmt.Sprint(i))
	}
	wrong := 0
	for i := range 10 * added {
		has := filter.mayHave(scope(i%5), fmt.Sprintf("label-%08d", i))
		switch {
		case i < added && !has:
			t.Errorf("text %d was added, and is not there", i)
		case i >= added && has:
			wrong++
		}
		if i < added && !filter.mayHave(scope(i%5), fmt.Sprint(i)) {
			t.Errorf("short text %d was added, and is not there", i)
		}
	}
	if wrong > added/5 {
		t.Errorf("%d of %d texts that were not added may have been", wrong, 9*added)
	}
}
