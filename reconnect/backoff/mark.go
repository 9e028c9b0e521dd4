package backoff

import "time"

// Permanent marks err as one that no further try can mend: [Classify] returns
// [ClassStop] for it.
//
// These rules hold for Permanent, [Slow] and [Refresh] alike. Classify finds the mark
// however deep in an error it is, and goes by it rather than by anything else that the
// error knows. Of several marks the outermost counts; in an [errors.Join], the first. A
// marked error prints as err does and unwraps to it. The result is nil if err is nil.
func Permanent(err error) error { return marked(err, ClassStop) }

// Slow marks err as one that somebody has to mend, such as an account that is not yet
// paid for: [Classify] returns [ClassSlow] for it, so that the next try comes minutes
// later (see [SlowMin]). The rules of [Permanent] hold.
func Slow(err error) error { return marked(err, ClassSlow) }

// Refresh marks err as a refusal of stale credentials, such as a token that has
// expired: [Classify] returns [ClassRefresh] for it, so that the next try is made with
// new ones ([Try.Refresh] is set). A second refusal in a row counts as [ClassSlow]. The
// rules of [Permanent] hold.
func Refresh(err error) error { return marked(err, ClassRefresh) }

func marked(err error, c Class) error {
	if err == nil {
		return nil
	}
	return &mark{err, c}
}

type mark struct {
	err   error
	class Class
}

func (m *mark) Error() string    { return m.err.Error() }
func (m *mark) Unwrap() error    { return m.err }
func (m *mark) Verdict() Verdict { return Verdict{Class: m.class} }

// RetryAfter marks err with the time that the server told us to wait, cut to
// [MaxRetryAfter]. The class stays the one that err has, by another mark too. Of several
// times the outermost counts. A marked error prints as err does and unwraps to it. The
// result is nil if err is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &delay{err, d}
}

type delay struct {
	err  error
	wait time.Duration
}

func (d *delay) Error() string                     { return d.err.Error() }
func (d *delay) Unwrap() error                     { return d.err }
func (d *delay) RetryAfter() (time.Duration, bool) { return d.wait, true }

// unmark returns err without the marks that are outermost.
func unmark(err error) error {
	for {
		switch e := err.(type) {
		case *mark:
			err = e.err
		case *delay:
			err = e.err
		default:
			return err
		}
	}
}
