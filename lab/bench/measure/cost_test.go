package measure

import "testing"

var sink [][]byte

// TestAllocations_MeasuredFunctionOnly: allocations of the measured function are counted, those of
// measuring are not.
func TestAllocations_MeasuredFunctionOnly(t *testing.T) {
	for _, want := range []int{0, 1, 1000} {
		sink = make([][]byte, 0, want)
		cost, err := Of(func() error {
			for range want {
				sink = append(sink, make([]byte, 64))
			}
			return nil
		})
		if err != nil || cost.CPU <= 0 || cost.Wall <= 0 {
			t.Errorf("%+v, %v", cost, err)
		}
		// The runtime can allocate memory for itself during the measurement.
		if got := int(cost.Allocs); got < want || got > want+10 {
			t.Errorf("%d allocations were counted of %d", got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	same := func(f float64) float64 { return f }
	if got := Median([]float64{3, 1, 2}, same); got != 2 {
		t.Errorf("the median is %v", got)
	}
	if got := Median(nil, same); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}
