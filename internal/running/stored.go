//go:build !killpoints

package running

// stored is called behind each store to a word of the file.
func stored() {}
