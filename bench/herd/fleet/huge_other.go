//go:build !linux

package fleet

// inHugePages does nothing where it is not known how.
func inHugePages[E any]([]E) {}
