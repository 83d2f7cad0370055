package ring

import "testing"

// TestStats follows one ring through a few turns.
func TestStats(t *testing.T) {
	r, err := New[uint64](8)
	if err != nil {
		t.Fatal(err)
	}
	at := r.head.Load()
	turn := func(limit uint64) func() {
		return func() { at = r.turn(at, limit, func([]uint64) {}) }
	}
	skip := func(end func(*Claim[uint64])) func() {
		return func() { c, _ := r.Claim(2); end(&c) }
	}
	put := func() { publish(t, r, 1) }
	for _, step := range []struct {
		name string
		do   func()
		want Stats
	}{
		{"new", func() {}, Stats{Slots: 8}},
		{"two published", func() { put(); put() }, Stats{Slots: 8, Used: 2}},
		{"both taken", turn(8), Stats{Slots: 8, HighWater: 2, Published: 2}},
		{
			"five published", func() { put(); put(); put(); put(); put() },
			Stats{Slots: 8, Used: 5, HighWater: 2, Published: 2},
		},
		{"one taken of five in use", turn(1), Stats{Slots: 8, Used: 4, HighWater: 5, Published: 3}},
		{"a run skipped", skip((*Claim[uint64]).Skip), Stats{Slots: 8, Used: 6, HighWater: 5, Published: 3}},
		{
			"a run left by a panic", skip((*Claim[uint64]).Abandon),
			Stats{Slots: 8, Used: 8, HighWater: 5, Published: 3, Abandoned: 2},
		},
		{"all taken", turn(8), Stats{Slots: 8, HighWater: 8, Published: 7, Skipped: 4, Abandoned: 2}},
	} {
		step.do()
		if got := r.Stats(); got != step.want {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
	}
}

// TestProducersRememberTheHead: only the claim that their copy of the
// consumer's cursor refuses reads the cursor itself.
func TestProducersRememberTheHead(t *testing.T) {
	r, err := New[uint64](4)
	if err != nil {
		t.Fatal(err)
	}
	at := r.head.Load()
	publish(t, r, 3)
	at = r.turn(at, 4, func([]uint64) {})
	publish(t, r, 1)
	if r.freed.Load() == at {
		t.Error("the cursor was read for a claim that the copy allowed")
	}
	publish(t, r, 1)
	if r.freed.Load() != at {
		t.Error("the cursor was not remembered")
	}
}
