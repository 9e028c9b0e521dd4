package xsync

import "sync"

// Flag is up or down. Any goroutine may raise it and wait for it; one goroutine lowers it.
type Flag struct {
	mu sync.Mutex // guards what follows
	up bool
	ch chan struct{} // closed when the flag goes up
}

// Raise raises the flag.
func (f *Flag) Raise() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.up && f.ch != nil {
		close(f.ch)
	}
	f.up = true
}

// IsUp reports whether the flag is up.
func (f *Flag) IsUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.up
}

// Up returns a channel that is closed once the flag is up.
func (f *Flag) Up() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ch == nil {
		f.ch = make(chan struct{})
		if f.up {
			close(f.ch)
		}
	}
	return f.ch
}

// Lower lowers the flag and forgets the channel.
func (f *Flag) Lower() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up, f.ch = false, nil
}
