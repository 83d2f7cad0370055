package main

import "time"

// options are what a run can be told.
type options struct {
	window    time.Duration
	windows   int
	work      int
	producers int
	wait      time.Duration
}
