package running

// Begin begins a cycle that nobody is inside yet. Its spans are none before its number stands
// there, so a kill in between leaves none counted in the wrong one.
func (f *File) Begin(number uint64) {
	if f == nil {
		return
	}
	c := f.layout.at(number)
	isLeft := state(c.state.Load()&3) != settled
	for door := range c.spans {
		if spans := c.spans[door].Swap(0); isLeft && spans > 0 {
			f.layout.older[door].Add(spans)
		}
	}
	c.state.Store(wordOf(number, open))
}

// Doubt notes that destinations may have something of a cycle, or that none has after all. The
// caller sees to it that calls for one cycle come one at a time.
func (f *File) Doubt(number uint64, is bool) {
	if is {
		f.set(number, doubtful)
	} else {
		f.set(number, open)
	}
}

// Settle notes that a cycle has its outcome. Nobody may be told before.
func (f *File) Settle(number uint64) { f.set(number, settled) }

func (f *File) set(number uint64, to state) {
	if f == nil {
		return
	}
	if c := f.layout.at(number); c.state.Load()>>2 == number {
		c.state.Store(wordOf(number, to))
	}
}

// Count notes spans of a cycle that nobody has any more but this daemon, such as those of a request
// that is about to be answered. Where the cycle has its outcome by then, that changes nothing.
func (f *File) Count(number uint64, door Door, spans uint64) {
	if f == nil {
		return
	}
	if c := f.layout.at(number); c.state.Load()>>2 == number {
		c.spans[door].Add(spans)
	}
}
