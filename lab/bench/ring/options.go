package main

// options are what a run can be told.
type options struct{ slots, fill, rounds int }

// producers are the crowds that are measured.
var producers = []int{1, 2, 8, 16}
