//go:build !killpoints

package recovery

// stored is called after each store to a word of the file.
func stored() {}
