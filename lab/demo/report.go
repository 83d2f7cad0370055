package demo

// report sums up what arrived since the one before.
type report interface {
	add(arrived any)
	table() table
}

// table is what a report shows: to a person in lines with tabs between the columns, and to a
// program as rows.
type table struct {
	header string
	lines  []string
	rows   any
}
