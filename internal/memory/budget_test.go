package memory

import (
	"math"
	"testing"
)

func TestBudget(t *testing.T) {
	b := Sum(
		[]Part{{"rings", 1 << 20, "ring-slots"}, {"program", 16 << 20, ""}},
		[]Part{{"connections", 64 << 20, "max-connections"}, {"keys", 32 << 20, "max-key-bytes-in-all"}},
	)
	if b.Total != 113<<20 || b.Parts[0].Name != "connections" || b.Parts[3].Name != "rings" {
		t.Errorf("the sum is %+v", b)
	}
	if err := b.Check(Limit{Bytes: 113 << 20}); err != nil {
		t.Error(err)
	}
	if err := b.Check(Limit{Bytes: math.MaxInt64}); err != nil {
		t.Error(err)
	}
	err := b.Check(Limit{Bytes: 100 << 20, Source: "the cgroup"})
	const want = "the limits may come to 113 MiB and the cgroup allows 100 MiB; lower " +
		"--max-connections (connections of 64 MiB), --max-key-bytes-in-all (keys of 32 MiB), --ring-slots (rings of 1.0 MiB), or allow more"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
