//go:build !windows

package backoff

// ofWindows is empty: only Windows has error numbers of its own.
var ofWindows []value
