package demo

// report sums up what arrived since the one before.
type report interface {
	add(arrived any)
	rows() []Row
}
