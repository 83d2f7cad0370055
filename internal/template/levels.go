package template

// levels say of each blank of a skeleton which fills vary there: those of some worth and
// above. They fit a word, two bits a blank.
type levels uint64

// has says whether a fill of this worth varies at a blank.
func (l levels) has(blank int, w worth) bool {
	least := worth(l >> (2 * blank) & 3)
	return least != 0 && w >= least
}

// with are the levels where fills of this worth and above vary at a blank too.
func (l levels) with(blank int, least worth) levels {
	if l.has(blank, least) {
		return l
	}
	return l&^(3<<(2*blank)) | levels(least)<<(2*blank)
}

// and are the levels where what varies in either varies.
func (l levels) and(other levels) levels {
	for blank := range maxFills {
		if least := worth(other >> (2 * blank) & 3); least != 0 {
			l = l.with(blank, least)
		}
	}
	return l
}
