package dialer

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// call runs f on a goroutine of its own, and waits for it. f calls functions of the user,
// and nothing that they do can skip the cleaning up of the caller: if f calls
// runtime.Goexit, call returns errGoexit; if f panics, call returns a [panicError], which
// the caller passes to raise when it has cleaned up.
func call[T any](f func() (T, error)) (result T, err error) {
	done := make(chan struct{})
	spawn(f, func(r T, e error) { result, err = r, e; close(done) })
	<-done
	return result, err
}

// spawn runs f on a goroutine of its own, and then done with what f returned, or with
// the error that call describes. The caller waits for done.
func spawn[T any](f func() (T, error), done func(T, error)) {
	go func() {
		var result T
		err := errGoexit
		defer func() {
			if v := recover(); v != nil {
				err = &panicError{v, debug.Stack()}
			}
			done(result, err)
		}()
		result, err = f()
	}()
}

var errGoexit = errors.New("a function given to the dialer did not return: it called runtime.Goexit")

// panicError is a panic on a goroutine of call, for the goroutine of the caller.
type panicError struct {
	value any
	stack []byte // of the goroutine that panicked
}

func (p *panicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// Unwrap returns the value of the panic if that is an error.
func (p *panicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// raise panics if err holds a panic.
func raise(err error) {
	if p, ok := errors.AsType[*panicError](err); ok {
		panic(p)
	}
}
