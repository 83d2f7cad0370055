package memory_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

func TestBudget(t *testing.T) {
	b := memory.NewBudget(slices.Concat(
		[]memory.Part{{"rings", 1 << 20, "ring-slots"}, {"program", 16 << 20, ""}},
		[]memory.Part{
			{"connections", 64 << 20, "max-connections"},
			{"keys", 32 << 20, "max-key-bytes-total"},
		},
	))
	if b.Total != 113<<20 || b.Parts[0].Name != "connections" || b.Parts[3].Name != "rings" {
		t.Errorf("the sum is %+v", b)
	}
	every := func(string) bool { return true }
	if err := b.Check(memory.Limit{Bytes: 113 << 20}, nil, every); err != nil {
		t.Error(err)
	}
	if err := b.Check(memory.Limit{Bytes: math.MaxInt64}, nil, every); err != nil {
		t.Error(err)
	}
	err := b.Check(memory.Limit{Bytes: 100 << 20, Source: "the cgroup"}, nil, every)
	const want = "the daemon may need 113 MiB, and the cgroup allows 100 MiB; lower " +
		"--max-connections (connections of 64 MiB), --max-key-bytes-total (keys of 32 MiB), --ring-slots " +
		"(rings of 1.0 MiB), or allow more"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestAdvice_NamesFlags checks that the error names each flag once, and says so if no limit can be lowered.
func TestAdvice_NamesFlags(t *testing.T) {
	b := memory.NewBudget([]memory.Part{
		{"sketches", 8 << 20, "sketch-bytes"},
		{"payloads being made", 7 << 20, "sketch-bytes"},
		{"payloads that wait", 6 << 20, "retry-bytes"},
		{"rings", 5 << 20, "ring-slots"},
	})
	limit := memory.Limit{Bytes: 20 << 20, Source: "the cgroup"}
	for _, c := range []struct{ lowest, want string }{
		{"", "; lower --sketch-bytes (sketches of 8.0 MiB), --retry-bytes (payloads that wait of 6.0 MiB), " +
			"--ring-slots (rings of 5.0 MiB), or allow more"},
		{"retry-bytes", "; lower --sketch-bytes (sketches of 8.0 MiB), --ring-slots (rings of 5.0 MiB), or " +
			"allow more"},
		{"sketch-bytes retry-bytes ring-slots", "; allow more; every limit is as low as it can be"},
	} {
		err := b.Check(limit, nil, func(flag string) bool { return !strings.Contains(c.lowest, flag) })
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("where %q can't be lower: %v", c.lowest, err)
		}
	}
}
