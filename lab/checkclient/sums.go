package checkclient

// sums are the totals of a connection.
type sums struct {
	messages, bytes            int
	definitions, redefinitions int
	batches, batchBytes, spans int
	numbered, repeated         int // spans with a key number; spans that repeated a full key
	repeatedBytes              int
	late, early                int
	notes                      map[string]int // number of notes by kind
}
