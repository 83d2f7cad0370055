package demo

// report summarizes the payloads since the previous report.
type report interface {
	add(arrived any)
	table() table
}

// table is the content of a report: tab-separated lines for people, and rows for programs.
type table struct {
	header string
	lines  []string
	rows   any
}
