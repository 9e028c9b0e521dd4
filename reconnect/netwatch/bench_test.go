package netwatch

import (
	"testing"
	"time"
)

// BenchmarkLook is what a Watcher costs every Interval, and after each burst.
func BenchmarkLook(b *testing.B) {
	m, err := thisMachine()
	if err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.look(Virtual); err != nil {
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
	var s attachments
	for range 10_000 {
		s.add(&attachment{conn: idleConn{}, over: b.Context().Done()})
	}
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		s.changed(now, time.Second)
		for due, ok := s.next(); ok; due, ok = s.next() {
			s.visit(due, true)
		}
	}
}
