//go:build !linux

package fleet

func inHugePages[E any]([]E) {}
