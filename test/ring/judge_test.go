package ring

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// TestJudge_RejectsImpossibleHistories checks sequential histories that a ring of two slots can't have, and one that it
// can have.
func TestJudge_RejectsImpossibleHistories(t *testing.T) {
	type step struct {
		operation
		result ring.Result
	}
	do := func(a act, id uint32) step { return step{operation: operation{act: a, id: id, n: 1}} }
	refused := func(id uint32) step { return step{operation{act: claim, id: id, n: 1}, ring.Full} }
	for _, test := range []struct {
		name  string
		steps []step
		want  bool
	}{
		{"as it should be", []step{
			do(claim, 1), do(claim, 2), refused(3), do(publish, 2), do(publish, 1),
			do(send, 9), do(take, 1), do(free, 1), do(claim, 4), do(take, 2), do(free, 2), do(deliver, 9),
		}, true},
		{"refused with room", []step{do(claim, 1), refused(2)}, false},
		{"claimed without room", []step{do(claim, 1), do(claim, 2), do(claim, 3)}, false},
		{"claimed before it was freed", []step{
			do(claim, 1), do(publish, 1), do(take, 1), do(claim, 2),
			do(claim, 3),
		}, false},
		{"read before it was published", []step{do(claim, 1), do(take, 1), do(publish, 1)}, false},
		{"read out of order", []step{
			do(claim, 1), do(claim, 2), do(publish, 1), do(publish, 2), do(take, 2),
			do(take, 1),
		}, false},
		{"read twice", []step{do(claim, 1), do(publish, 1), do(take, 1), do(take, 1)}, false},
		{"skipped and read", []step{do(claim, 1), do(skip, 1), do(take, 1)}, false},
		{"a report too early", []step{do(claim, 1), do(publish, 1), do(send, 9), do(deliver, 9)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &history{}
			for _, s := range test.steps {
				h.add(0, s.operation, s.result, h.tick(), h.tick())
			}
			if got := porcupine.CheckOperations(modelOf(2), h.operations); got != test.want {
				t.Errorf("the judge returns %t, want %t", got, test.want)
			}
		})
	}
}
