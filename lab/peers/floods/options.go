package main

import "time"

// options are what a run can be told.
type options struct {
	rounds     int
	least      time.Duration
	shapes     []string
	program    string
	slow, fast int
	names      string
}

// whole is the share of a flood that has nothing beside it, in percent.
const whole = 100
