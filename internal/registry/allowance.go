package registry

// allowance is rows, and the memory of their keys.
type allowance struct{ rows, bytes int }

func (a allowance) isBelow(limit allowance) bool { return a.rows < limit.rows && a.bytes < limit.bytes }

func (a *allowance) add(bytes int) {
	a.rows++
	a.bytes += bytes
}

func (a allowance) plus(b allowance) allowance { return allowance{a.rows + b.rows, a.bytes + b.bytes} }

func (a allowance) minus(b allowance) allowance {
	return allowance{max(0, a.rows-b.rows), max(0, a.bytes-b.bytes)}
}

func (a allowance) over(divisor int) allowance {
	return allowance{rows: max(1, a.rows/divisor), bytes: max(1, a.bytes/divisor)}
}

func (a allowance) atMost(b allowance) allowance {
	return allowance{min(a.rows, b.rows), min(a.bytes, b.bytes)}
}

// gate is the higher of the gates that stand before rows and bytes, of which others have
// taken so much.
func (a allowance) gate(others, kept allowance) familiarity {
	return max(gateOf(others.rows, kept.rows, a.rows), gateOf(others.bytes, kept.bytes, a.bytes))
}
