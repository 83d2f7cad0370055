package registry

// All origins share MaxAggregates rows and LabelBytes of what names them, first
// come, first served. One that floods would take them all, and the keys of every
// other meet in its overflow row. So beyond those there is a reserve, a quarter as
// much, that is open only to an origin below its floor, a sixteenth of the reserve:
// 32 rows each by default, for sixteen origins whatever the others do, and for more
// as long as the reserve lasts.

// allowance is rows, and the memory of their keys.
type allowance struct{ rows, bytes int }

func (a allowance) isBelow(limit allowance) bool { return a.rows < limit.rows && a.bytes < limit.bytes }

func (a *allowance) add(bytes int) {
	a.rows++
	a.bytes += bytes
}

func (a allowance) over(divisor int) allowance {
	return allowance{rows: max(1, a.rows/divisor), bytes: max(1, a.bytes/divisor)}
}

// shared is what all origins may take.
func (c *Config) shared() allowance { return allowance{rows: c.MaxAggregates, bytes: c.LabelBytes} }

// reserve is what there is beyond that.
func (c *Config) reserve() allowance { return c.shared().over(4) }

// floor is how much an origin may have and still use the reserve.
func (c *Config) floor() allowance { return c.reserve().over(16) }

// room is what one interval's rows have taken.
type room struct {
	limits  struct{ shared, reserve, floor allowance }
	shared  allowance   // taken of what all origins share
	reserve allowance   // taken of the reserve
	origins []allowance // by OriginID, taken by each of both; without overflow rows
}

// has says whether an origin may have one more row. Its key may then take more
// bytes than are left, but no other after it.
func (r *room) has(origin OriginID) bool {
	return r.shared.isBelow(r.limits.shared) ||
		r.reserve.isBelow(r.limits.reserve) && r.origins[origin].isBelow(r.limits.floor)
}

func (r *room) take(origin OriginID, bytes int) {
	r.origins[origin].add(bytes)
	if r.shared.isBelow(r.limits.shared) {
		r.shared.add(bytes)
		return
	}
	r.reserve.add(bytes)
}
