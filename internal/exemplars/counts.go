package exemplars

// Counts say what became of candidates since New.
type Counts struct {
	Taken   uint64 // with their bodies, while their cycle was open
	Refused uint64 // the agent has not got their bodies
	Late    uint64 // their cycle was sealed before the agent had answered
	NoRoom  uint64 // spans that found no room to be one
}

// ByResult are the counts by the results' names in metrics, each present, also at 0.
func (c Counts) ByResult() map[string]uint64 {
	return map[string]uint64{"taken": c.Taken, "refused": c.Refused, "late": c.Late, "no_room": c.NoRoom}
}
