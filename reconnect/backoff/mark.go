package backoff

import "time"

// Permanent marks err as one that no further try can mend: [Classify] makes it
// [ClassStop], however deep in an error it is found. It prints as err does and
// unwraps to it. It returns nil if err is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

type permanent struct{ err error }

func (p *permanent) Error() string    { return p.err.Error() }
func (p *permanent) Unwrap() error    { return p.err }
func (p *permanent) Verdict() Verdict { return Verdict{Class: ClassStop} }

// RetryAfter marks err with a time for which the server does not want to see
// us; its class stays what it was. The outermost mark counts, and it counts
// before what err itself knows. It prints as err does and unwraps to it. It
// returns nil if err is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &told{err, d}
}

type told struct {
	err  error
	wait time.Duration
}

func (t *told) Error() string                     { return t.err.Error() }
func (t *told) Unwrap() error                     { return t.err }
func (t *told) RetryAfter() (time.Duration, bool) { return t.wait, true }

// unmark takes off the marks around err, as far as they are outermost.
func unmark(err error) error {
	for {
		switch mark := err.(type) {
		case *permanent:
			err = mark.err
		case *told:
			err = mark.err
		default:
			return err
		}
	}
}
