package main

import "time"

// options are the flags.
type options struct {
	rounds     int
	least      time.Duration
	shapes     []string
	program    string
	slow, fast int
	names      string
}

// whole is the percentage of a flood without other spans.
const whole = 100
