//go:build !killpoints

package recovery

// stored is called behind each store to a word of the file.
func stored() {}
