package main

// names are the results of all floods for regular keys.
type names []kept

// kept counts the regular keys that occurred often enough in each interval of a flood, and
// those of them that had a row in all intervals.
type kept struct {
	flooding
	Often, Always int
}

// flooding is a flood mixed with regular keys.
type flooding struct {
	Shape   string
	Percent int // percentage of all spans
	Rate    int // total spans per second
}

var percents = [...]int{5, 50}

func (k *kept) add(other kept) { k.Often, k.Always = k.Often+other.Often, k.Always+other.Always }

func (k *kept) share() float64 { return float64(k.Always) / float64(max(k.Often, 1)) }

// ofAll returns the share of regular keys that kept their rows in all floods.
func (n names) ofAll() float64 {
	var all kept
	for _, one := range n {
		all.add(one)
	}
	return all.share()
}

// worst returns the lowest share that kept their rows in the floods of a shape.
func (n names) worst(shape string, percent int) float64 {
	least := 1.0
	for _, one := range n {
		if one.Shape == shape && one.Percent == percent {
			least = min(least, one.share())
		}
	}
	return least
}
