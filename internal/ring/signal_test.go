package ring

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// TestSignals_AndData records the order in which a consumer gets slots and signals, if the mailbox
// is full before the consumer starts.
func TestSignals_AndData(t *testing.T) {
	type step = func(t *testing.T, r *Ring[uint64])
	put := func(value uint64) step {
		return func(t *testing.T, r *Ring[uint64]) {
			c, _ := r.Claim(1)
			*c.Slot(0) = value
			c.Publish()
		}
	}
	send := func(kind Kind, arg uint64) step {
		return func(t *testing.T, r *Ring[uint64]) {
			if !r.Send(Signal{kind, arg}) {
				t.Error("no room for a signal")
			}
		}
	}
	for _, test := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{
			"a report is after its data",
			[]step{put(1), put(2), send(Report, 7), send(Stop, 0)},
			[]string{"1", "2", "report 7", "stop"},
		},
		{
			"data of the same turn comes before it too",
			[]step{put(1), send(Report, 7), put(2), send(Stop, 0)},
			[]string{"1", "report 7", "2", "stop"},
		},
		{
			"a clear goes past everything",
			[]step{put(1), send(Report, 7), send(Clear, 8), send(Stop, 0)},
			[]string{"clear 8", "1", "report 7", "stop"},
		},
		{
			"a stop after a clear survives",
			[]step{send(Clear, 8), send(Stop, 0)},
			[]string{"clear 8", "stop"},
		},
		{
			"signals keep their order and let data pass between them",
			[]step{send(Report, 1), send(Report, 2), put(1), send(Report, 3), send(Stop, 0)},
			[]string{"report 1", "1", "report 2", "report 3", "stop"},
		},
		{
			"items after a stop stay",
			[]step{put(1), send(Stop, 0), send(Clear, 8)},
			[]string{"clear 8", "1", "stop"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := New[uint64](8)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range test.steps {
				step(t, r)
			}
			var got []string
			r.Consume(1, func(slots []uint64) {
				for _, s := range slots {
					got = append(got, fmt.Sprint(s))
				}
			}, func(s Signal) { got = append(got, nameOf(s)) })
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func nameOf(s Signal) string {
	switch s.Kind {
	case Report:
		return fmt.Sprint("report ", s.Arg)
	case Clear:
		return fmt.Sprint("clear ", s.Arg)
	}
	return "stop"
}

// TestSignals_ReportWaitsForClaims sends a report while a run is claimed but not published. The consumer
// sleeps until then, and a clear wakes it.
func TestSignals_ReportWaitsForClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := New[uint64](8)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		stop := start(t, r, 8, func(slots []uint64) { got = append(got, fmt.Sprint(len(slots), " slots")) },
			func(s Signal) { got = append(got, nameOf(s)) })
		early, _ := r.Claim(2)
		publish(t, r, 3)
		r.Send(Signal{Report, 1})
		late, _ := r.Claim(1)
		r.Send(Signal{Clear, 2})
		synctest.Wait()
		if want := []string{"clear 2"}; !slices.Equal(got, want) {
			t.Fatalf("before the publish got %v, want %v", got, want)
		}
		early.Publish()
		synctest.Wait()
		if want := []string{"clear 2", "5 slots", "report 1"}; !slices.Equal(got, want) {
			t.Fatalf("after the publish got %v, want %v", got, want)
		}
		late.Skip()
		stop()
	})
}

// TestSlots_FreeAfterConsumed expects that no producer gets slots that the consumer is
// reading.
func TestSlots_FreeAfterConsumed(t *testing.T) {
	r, err := New[int](8)
	if err != nil {
		t.Fatal(err)
	}
	claim, _ := r.Claim(5)
	claim.Publish()
	r.Send(Signal{Kind: Stop})
	r.Consume(8, func([]int) {
		if _, result := r.Claim(4); result != Full {
			t.Error("four of eight slots are claimed while five are read")
		}
	}, func(Signal) {})
	if free := r.Free(); free != 8 {
		t.Errorf("%d of eight slots are free when all were read", free)
	}
}
