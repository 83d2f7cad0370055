package main

import "time"

// options are the flags.
type options struct {
	window    time.Duration
	windows   int
	work      int
	producers int
	wait      time.Duration
}
