//go:build race

package debug

const raceEnabled = true
