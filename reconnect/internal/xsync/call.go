package xsync

import "errors"

// Call is a call of a user's function in a goroutine of its own.
type Call struct {
	Done <-chan struct{} // closed when the function has ended

	// Returned reports whether the function has returned, and has not called [runtime.Goexit], as the Fatal
	// methods of package testing do. It is valid once Done is closed.
	Returned bool
}

// Go calls f in a goroutine that ends with f. The caller waits for Done.
func Go(f func()) *Call {
	done := make(chan struct{})
	c := &Call{Done: done}
	go func() {
		defer close(done)
		f()
		c.Returned = true
	}()
	return c
}

// Guard calls f. If f does not return, because it panics or calls [runtime.Goexit], Guard
// calls otherwise.
func Guard(f, otherwise func()) {
	returned := false
	defer func() {
		if !returned {
			otherwise()
		}
	}()
	f()
	returned = true
}

// ErrNotReturned is the error of a function of the user's that did not return: see [Call.Returned].
var ErrNotReturned = errors.New("the function did not return, but ended its goroutine (runtime.Goexit)")

// InOrder calls functions, one after the other. If one does not return, as in Guard, the others are called in a goroutine of their own.
func InOrder(calls ...func()) {
	for i, call := range calls {
		Guard(call, func() { go InOrder(calls[i+1:]...) }) // the last of the calls says that it has ended
	}
}
