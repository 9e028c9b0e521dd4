//go:build !windows

package backoff

// Only Windows has error numbers of its own.
var wsaLocal, wsaDenied, wsaTimeout, wsaRefused []error
