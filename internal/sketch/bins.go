package sketch

// Bins is a distribution that was counted elsewhere.
type Bins struct {
	Zeros uint64
	List  []Bin // lowest first, if that is at hand
}

// Bin is the spans of one bin.
type Bin struct {
	Index uint16 // at most that of its mapping's LastBin
	Spans uint64
}
