package aggregate

// All origins share MaxAggregates rows, first come, first served. One that floods
// would take them all, and the keys of every other meet in its overflow row. So
// beyond those there is a reserve, a quarter as many, that is open only to an
// origin with fewer rows than its floor, a sixteenth of the reserve: 32 rows each
// by default, for sixteen origins whatever the others do, and for more as long as
// the reserve lasts.

// reserve is the number of rows beyond MaxAggregates.
func (c *Config) reserve() int { return max(1, c.MaxAggregates/4) }

// floor is the number of rows below which an origin may use the reserve.
func (c *Config) floor() int { return max(1, c.reserve()/16) }

// maxKeys is the most keys an interval can have, the overflow rows included.
func (c *Config) maxKeys() int { return c.MaxAggregates + c.reserve() + c.MaxOrigins }

// hasRoom says whether an origin may have one more row. Rows are one bound, the
// labels of their keys another: LabelBytes for all, and a quarter more for the
// origins below their floor. The last key may exceed it by its own length.
func (r *registry) hasRoom(origin OriginID) bool {
	bytes, limit := r.values.bytes, r.config.LabelBytes
	if r.used[origin].rows < r.config.floor() && bytes < limit+limit/4 && r.rows.kept < r.config.reserve() {
		return true
	}
	return r.rows.shared < r.config.MaxAggregates && bytes < limit
}

// takeRoom takes it.
func (r *registry) takeRoom(origin OriginID) {
	r.used[origin].rows++
	if r.rows.shared < r.config.MaxAggregates {
		r.rows.shared++
		return
	}
	r.rows.kept++
}
