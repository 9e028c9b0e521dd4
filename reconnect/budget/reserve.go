package budget

import (
	"errors"
	"sync"
)

// BeforeDial returns nil if a connection may dial now, or an error that says when it may log in. cause, why
// its last session ended or dial failed, becomes Err of the error unless there is another. A nil Logins
// returns nil.
func (l *Logins) BeforeDial(cause error) *LoginError {
	short, _, _ := l.ask(cause, false)
	return short
}

// Reserve is like BeforeDial for a connection that dials immediately, and reserves a login, so that other
// connections of the process do not dial for it. Package reconnect calls it. The caller must call release when
// it has taken the login, or will not take one. Further calls do nothing.
//
// If no unreserved login is left, short says when there will be one, even if all reserved logins are taken;
// ended is closed when the next reservation ends.
func (l *Logins) Reserve(cause error) (release func(), short *LoginError, ended <-chan struct{}) {
	short, reserved, ended := l.ask(cause, true)
	release = func() {}
	if reserved {
		release = sync.OnceFunc(l.release)
	}
	return release, short, ended
}

// ask is BeforeDial and Reserve.
func (l *Logins) ask(cause error, reserve bool) (short *LoginError, reserved bool, ended <-chan struct{}) {
	if l == nil {
		return nil, false, nil
	}
	_, refused := errors.AsType[*LoginError](cause)
	if l.o.Resumes && !refused {
		return nil, false, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	taken, short := l.known() // under the lock that guards reserved, too
	if short == nil {
		short = l.short(taken, l.reserved+1, l.o.Now())
	}
	switch {
	case !reserve:
	case short == nil:
		l.reserved++
	case l.freed == nil:
		l.freed = make(chan struct{})
	}
	if short != nil && short.Err == nil && !refused {
		short.Err = cause
	}
	return short, reserve && short == nil, l.freed
}

// release ends a reservation.
func (l *Logins) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved--
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}
