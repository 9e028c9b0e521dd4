package xsync

// Call is a function of the user's that runs in a goroutine of its own.
type Call struct {
	done     chan struct{}
	returned bool
}

// Go calls f in a goroutine, which ends with f: wait for Done.
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

// Returned reports, after Done, whether the function has returned. If not, it has
// called [runtime.Goexit], as the Fatal methods of package testing do.
func (c *Call) Returned() bool { return c.returned }

// Guard calls f, and then otherwise if f does not return: if it has called
// [runtime.Goexit], or panics.
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
