package main

// names says what floods did to honest keys.
type names []kept

// kept is how many honest keys came often enough in each interval of a flooding, and how
// many of them had a row in all.
type kept struct {
	flooding
	Often, Always int
}

// flooding is a flood beside honest keys.
type flooding struct {
	Shape   string
	Percent int // of all spans
	Rate    int // spans a second in all
}

var percents = [...]int{5, 50}

func (k *kept) add(other kept) { k.Often, k.Always = k.Often+other.Often, k.Always+other.Always }

func (k *kept) share() float64 { return float64(k.Always) / float64(max(k.Often, 1)) }

// ofAll is the share of honest keys that all floodings left.
func (n names) ofAll() float64 {
	var all kept
	for _, one := range n {
		all.add(one)
	}
	return all.share()
}

// worst is the least share that a shape has left.
func (n names) worst(shape string, percent int) float64 {
	least := 1.0
	for _, one := range n {
		if one.Shape == shape && one.Percent == percent {
			least = min(least, one.share())
		}
	}
	return least
}
