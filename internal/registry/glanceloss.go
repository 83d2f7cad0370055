package registry

// lostName is the keys that lost a tag of a name.
type lostName struct {
	name int32
	keys uint64
}

// nameless stands for the name of a tag whose name has no budget.
const nameless = -1

func (g *Glance) loseTag(name int32) {
	g.tags[g.lostTags] = name
	g.lostTags++
}

// lose counts what a key has lost, for the Registry's blame: keys in a row have mostly
// lost the same. A tag is lost under its name.
func (g *Glance) lose(lost Collapsed) {
	lost &^= 1 << FieldPeerTag
	if lost != g.lost {
		g.sumLost()
		g.lost = lost
	}
	g.lostTimes++
	for _, name := range g.tags[:g.lostTags] {
		g.loseName(name, 1)
	}
}

func (g *Glance) loseName(name int32, keys uint64) {
	for i := range g.lostNames {
		if g.lostNames[i].name == name {
			g.lostNames[i].keys += keys
			return
		}
	}
	g.lostNames = append(g.lostNames, lostName{name, keys})
}

func (g *Glance) sumLost() {
	for f := range FieldWholeKey {
		if g.lost.Has(f) {
			g.lostSum[f] += g.lostTimes
			g.lostAny = true
		}
	}
	g.lostTimes = 0
}

// Settle makes known what was lost, before the cycle is left.
func (g *Glance) Settle() {
	g.sumLost()
	if !g.lostAny && len(g.lostNames) == 0 {
		return
	}
	r := g.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	for f, keys := range g.lostSum {
		r.lost[f] += keys
	}
	for _, lost := range g.lostNames {
		if lost.name == nameless {
			r.lost[FieldPeerTag] += lost.keys
		} else {
			r.names[lost.name].lost += lost.keys
		}
	}
	g.forget()
}

func (g *Glance) forget() {
	g.lost, g.lostTimes, g.lostAny, g.lostSum = 0, 0, false, [FieldWholeKey]uint64{}
	g.lostNames = g.lostNames[:0]
}
