// Package demand measures, in bounded memory, how many distinct values a label has and which of them are
// the most frequent. The registry uses it for labels that have more values than their budget allows.
//
// Distinct estimates the number of different values with a HyperLogLog sketch. Frequent finds the most
// frequent values with the Space-Saving algorithm. Neither is safe for concurrent use.
package demand

import (
	"math"
	"math/bits"
)

const (
	registerBits  = 12 // bits of a hash that select a register
	registerCount = 1 << registerBits
)

// Distinct estimates how many different hashes were added to it. It is a HyperLogLog sketch of 4 KiB
// with a standard error of 1.04/sqrt(4096), or 1.6 %: the error is below 5 % in 99.8 % of all cases.
// Hashes must be uniformly distributed. The zero value is an empty sketch.
type Distinct struct {
	// Each register has the largest number of leading zeros, plus one, of the hashes that it is selected by.
	registers [registerCount]uint8
}

// Add adds the hash of a value. Adding a hash again changes nothing.
func (d *Distinct) Add(hash uint64) {
	register := &d.registers[hash>>(64-registerBits)]
	rest := hash<<registerBits | 1<<(registerBits-1) // the additional bit limits the number of zeros
	rank := uint8(bits.LeadingZeros64(rest) + 1)
	if rank > *register {
		*register = rank
	}
}

// Estimate returns the estimated number of different hashes. It uses the estimator of Otmar Ertl, "New
// cardinality estimation algorithms for HyperLogLog sketches" (2017), which needs no correction for
// small numbers.
func (d *Distinct) Estimate() int {
	const maxRank = 64 - registerBits + 1
	var counts [maxRank + 1]float64 // number of registers, by their value
	for _, rank := range d.registers {
		counts[rank]++
	}
	emptyShare := counts[0] / registerCount
	sum := registerCount * sigma(emptyShare) // for the empty registers
	for rank := 1; rank <= maxRank; rank++ {
		sum += math.Ldexp(counts[rank], -rank) // counts[rank] / 2^rank
	}
	const alpha = 1 / (2 * math.Ln2) // the paper's limit for many registers
	estimate := alpha * registerCount * registerCount / sum
	return int(math.Round(estimate))
}

// sigma returns the function σ of the paper that Estimate names: how much an empty register adds to the sum in
// Estimate. share is the share of empty registers. The result is the limit of the series
//
//	share + 1*share^2 + 2*share^4 + 4*share^8 + ...
//
// which is infinite if all registers are empty.
func sigma(share float64) float64 {
	if share == 1 {
		return math.Inf(1)
	}
	power, factor, sum := share, 1.0, share
	for {
		power *= power
		previous := sum
		sum += power * factor
		if sum == previous {
			return sum // further terms are too small to change it
		}
		factor *= 2
	}
}
