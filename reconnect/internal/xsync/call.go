package xsync

import "errors"

// Call is a call of a user's function in a goroutine of its own.
type Call struct {
	done     chan struct{}
	returned bool
}

// Go calls f in a goroutine that ends with f. The caller waits for Done.
func Go(f func()) *Call {
	c := &Call{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		f()
		c.returned = true
	}()
	return c
}

// Done returns a channel that is closed when the function has ended.
func (c *Call) Done() <-chan struct{} { return c.done }

// Returned reports whether the function has returned. Call it after Done. False means that
// the function called [runtime.Goexit], as the Fatal methods of package testing do.
func (c *Call) Returned() bool { return c.returned }

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
