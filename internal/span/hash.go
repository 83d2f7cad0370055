package span

import "hash/maphash"

// seed is of this process, so that nobody outside can choose labels that collide.
var seed = maphash.MakeSeed()

// Look hashes a label and reports whether all of it is ASCII. The hash means nothing
// in another process.
func Look(text string) (hash uint64, isASCII bool) {
	return maphash.String(seed, text), IsASCII(text)
}

// LookService hashes the name of a service and reports whether it can stay as it is.
func LookService(text string) (hash uint64, isName bool) {
	return maphash.String(seed, text), IsServiceName(text)
}

// LookOperation is the same for the name of an operation.
func LookOperation(text string) (hash uint64, isName bool) {
	return maphash.String(seed, text), IsOperationName(text)
}
