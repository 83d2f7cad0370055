package collector

// maxLives limits the remembered cumulative series.
const maxLives = 100_000

// lives holds the last point of each cumulative series.
type lives map[string]*Point

// next checks a cumulative point against the previous point of its series, and returns that
// point. While a series lives, its start must not change, its totals must not decrease, and its
// time must not go back; a point of the same time must be equal. A series can be reset: it
// begins again with a later start.
func (l lives) next(name string, p *Point, problem func(format string, args ...any)) (before *Point) {
	if p.End <= p.Start {
		problem("series %s from %d to %d", name, p.Start, p.End)
	}
	before = l[name]
	switch {
	case before == nil:
		if len(l) >= maxLives {
			problem("series %s is one of more than %d", name, maxLives)
			return nil
		}
	case p.Start != before.Start && p.Start < before.End:
		problem("series %s began at %d and lived until %d, and now it began at %d", name, before.Start,
			before.End, p.Start)
	case p.Start != before.Start:
		before = nil // the series was reset
	case p.End < before.End || p.fallsBelow(before) || p.End == before.End && before.fallsBelow(p):
		problem("series %s was %+v, and falls to %+v", name, *before, *p)
	}
	l[name] = p
	return before
}

// fallsBelow reports whether any total of a point is lower than in an earlier point of its
// series.
func (p *Point) fallsBelow(before *Point) bool {
	if p.Value < before.Value || p.Count < before.Count || p.Zeros < before.Zeros || p.Sum < before.Sum ||
		p.Scale > before.Scale && len(before.Counts) > 0 {
		return true
	}
	now := map[int]uint64{}
	for i, n := range p.Counts {
		now[int(p.Offset)+i] += n
	}
	then := map[int]uint64{}
	for i, n := range before.Counts {
		then[(int(before.Offset)+i)>>(before.Scale-p.Scale)] += n
	}
	for bucket, n := range then {
		if now[bucket] < n {
			return true
		}
	}
	return false
}
