package main

import "time"

// options are the flags.
type options struct {
	rounds   int
	least    time.Duration
	requests []string
	program  string
	table    string
}
