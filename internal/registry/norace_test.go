//go:build !race

package registry

const lookupRounds = 30
