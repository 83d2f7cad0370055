package clientstats

// MaxBins is how many bins the longest body may have.
const MaxBins = maxBins

// GroupsOf is how many groups a body of that length may have.
func GroupsOf(body int) int { return limitsOf(body).groups }
