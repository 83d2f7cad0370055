package registry

// usage is rows, and the memory of their keys and new labels.
type usage struct{ rows, bytes int }

func (u usage) isBelow(limit usage) bool { return u.rows < limit.rows && u.bytes < limit.bytes }

func (u *usage) add(bytes int) {
	u.rows++
	u.bytes += bytes
}

func (u usage) over(divisor int) usage {
	return usage{rows: max(1, u.rows/divisor), bytes: max(1, u.bytes/divisor)}
}

// rowBudget is the rows of one interval, and the memory of the keys that have them: two
// budgets that all origins share, of which a key takes from both.
//
// Beyond them there is a quarter as much in reserve. An origin below its fair share, which is
// all rows divided by the origins that are there, finds in every interval at least a quarter of
// its fair share more than it had, whatever the other origins have taken.
type rowBudget struct {
	all     usage
	rows    budget
	bytes   budget
	reserve usage // taken
	present int   // origins that are there, or that keep rows
}

func newRowBudget(all usage, p *previous) rowBudget {
	b := rowBudget{
		all:   all,
		rows:  newBudget(all.rows, p.rows, false),
		bytes: newBudget(all.bytes, p.bytes, false),
	}
	for _, o := range p.origins {
		if o.kept.rows > 0 {
			b.present++
		}
	}
	return b
}

// join adds an origin with its part of the previous interval.
func (b *rowBudget) join(left *previousOrigin) {
	if left.kept.rows == 0 {
		b.present++
	}
}

// rowPart is where a row is taken from.
type rowPart struct {
	rows, bytes recurrence
	isReserve   bool
}

// find returns where an origin may take a row, if it may.
func (b *rowBudget) find(o *origin, known recurrence) (from rowPart, ok bool) {
	rows, hasRows := b.rows.find(known, false, alone)
	bytes, hasBytes := b.bytes.find(known, false, alone)
	if hasRows && hasBytes {
		return rowPart{rows: rows, bytes: bytes}, true
	}
	fair := b.all.over(b.present)
	hasReserve := b.present > 1 && b.reserve.isBelow(b.all.over(4)) &&
		o.rows.isBelow(fair) && o.extra.isBelow(fair.over(4))
	return rowPart{rows: open, isReserve: true}, hasReserve
}

// take takes a row from where find has found it. Its key may take more bytes than are left
// there, but no key after it.
func (b *rowBudget) take(o *origin, from rowPart, bytes int) {
	o.rows.add(bytes)
	if from.isReserve {
		o.extra.add(bytes)
		b.reserve.add(bytes)
		return
	}
	b.rows.take(from.rows, false)
	b.bytes.parts[from.bytes].taken += bytes
}
