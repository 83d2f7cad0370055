// Package registry numbers the keys and origins of one interval and keeps its budgets.
//
// A key that was not met before in the interval is charged here: each label to its
// origin's budget, the key itself to the rows and bytes that all origins share. What is
// over a budget collapses before the key is looked up, so that totals survive and names
// do not.
package registry
