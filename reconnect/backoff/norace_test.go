//go:build !race

package backoff_test

const race = false
