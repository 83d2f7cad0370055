package clientstats

// MaxBins is the maximum number of bins in a body of any length.
const MaxBins = maxBins

// GroupsOf returns the maximum number of groups in a body of bodyLen bytes.
func GroupsOf(bodyLen int) int { return limitsOf(bodyLen).groups }
