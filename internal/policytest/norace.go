//go:build !race

package policytest

const race = false
