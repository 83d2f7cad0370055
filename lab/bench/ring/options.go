package main

// options are the flags.
type options struct{ slots, fill, rounds int }

// producers are the measured numbers of producers.
var producers = []int{1, 2, 8, 16}
