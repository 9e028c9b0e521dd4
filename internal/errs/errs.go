// Package errs looks for an error in what another one wraps.
package errs

// Find reports whether err, or anything it wraps, is a T for which yes returns true. It
// looks in the order of [errors.As].
func Find[T any](err error, yes func(T) bool) bool {
	if err == nil {
		return false
	}
	if e, ok := err.(T); ok && yes(e) {
		return true
	}
	if other, ok := err.(interface{ As(any) bool }); ok {
		var e T
		if other.As(&e) && yes(e) {
			return true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return Find(e.Unwrap(), yes)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if Find(err, yes) {
				return true
			}
		}
	}
	return false
}
