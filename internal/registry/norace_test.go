//go:build !race

package registry

const glanceRounds = 30
