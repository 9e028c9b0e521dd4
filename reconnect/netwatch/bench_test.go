package netwatch

import (
	"testing"
	"time"
)

// BenchmarkLook is what a Watcher costs every Interval, and after each burst.
func BenchmarkLook(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := look(Virtual); err != nil {
			b.Fatal(err)
		}
	}
}

// idleConn is a Conn that does nothing.
type idleConn struct{}

func (idleConn) Kick()                 {}
func (idleConn) Check()                {}
func (idleConn) Done() <-chan struct{} { return nil }

// BenchmarkChange is what a change costs with 10,000 attached connections: all calls, and when
// they are due.
func BenchmarkChange(b *testing.B) {
	w := &Watcher{o: Options{Spread: time.Second}}
	for range 10_000 {
		w.Attach(b.Context(), idleConn{})
	}
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		w.plan(now)
		for next := w.visit(now, true); !next.IsZero(); next = w.visit(next, true) {
		}
	}
}
