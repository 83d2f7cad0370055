package checkclient

// sums are what a connection came to.
type sums struct {
	messages, bytes            int
	definitions, redefinitions int
	batches, batchBytes, spans int
	numbered, repeated         int // spans whose key was a number, or came whole though it had come before
	repeatedBytes              int
	late, early                int
	notes                      map[string]int // by kind
}
