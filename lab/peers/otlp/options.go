package main

import "time"

// options are what a run can be told.
type options struct {
	rounds   int
	least    time.Duration
	requests []string
	program  string
	table    string
}
