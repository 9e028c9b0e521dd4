package program

import (
	"bytes"
	"regexp"
	"sync"
	"testing"
)

// Output collects what a program writes. Any goroutine may call its methods.
type Output struct {
	t     *testing.T
	ended chan struct{} // closed when nothing more will be written; nil: never

	mu      sync.Mutex // guards what follows
	text    bytes.Buffer
	changed chan struct{} // closed, and replaced, by each Write
}

// NewOutput returns an empty Output that has no end.
func NewOutput(t *testing.T) *Output { return &Output{t: t, changed: make(chan struct{})} }

// Write implements [io.Writer].
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(b)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Await waits until the output contains text.
func (o *Output) Await(text string) {
	o.t.Helper()
	o.Find(regexp.QuoteMeta(text))
}

// Find waits until a part of the output matches pattern, and returns the match and its
// submatches. It fails the test if the program ends without such output.
func (o *Output) Find(pattern string) []string {
	o.t.Helper()
	for ended := false; ; {
		o.mu.Lock()
		found, changed := regexp.MustCompile(pattern).FindStringSubmatch(o.text.String()), o.changed
		o.mu.Unlock()
		switch {
		case found != nil:
			return found
		case ended:
			o.t.Fatalf("the program has ended and did not write %q:\n%s", pattern, o)
		}
		select {
		case <-changed:
		case <-o.ended:
			ended = true
		}
	}
}
