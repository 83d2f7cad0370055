package main

import "testing"

func TestRest(t *testing.T) {
	before := []work{{100, 50}, {1000, 900}}
	for _, at := range []struct {
		after []work
		want  bool
	}{
		{[]work{{200, 59}, {1010, 900}}, true},
		{[]work{{200, 60}, {1010, 900}}, false},
		{[]work{{200, 59}, {1010, 901}}, false},
		{[]work{{100, 50}, {1010, 900}}, false}, // no work, so no result
	} {
		if got := rest(before, at.after); got != at.want {
			t.Errorf("%v: %v", at.after, got)
		}
	}
}
