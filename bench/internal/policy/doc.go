// Package policy names the waiting rules of the library and of others ([Rule]), with their
// parameters, and parses what a user writes to choose some ([Parse], [Flag]). Every command that
// has policies has these.
package policy
