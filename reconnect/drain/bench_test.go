package drain_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/redial-go/redial/reconnect/drain"
)

// The cost of 100,000 connections in a Group. Run it with -benchtime 1x.
func BenchmarkHundredThousand(b *testing.B) {
	const n = 100_000
	closer := func(int, string) error { return nil }
	for b.Loop() {
		g, err := drain.New(&drain.Options{Lead: -1, Window: 2 * time.Second, MaxAge: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		before := heap()
		start := time.Now()
		for range n {
			g.Add(closer)
		}
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/n, "ns/Add")
		b.ReportMetric(float64(heap()-before)/n, "B/member")
		start = time.Now()
		if err := g.Drain(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/Drain")
	}
}

// heap returns the bytes in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A member that comes and goes.
func BenchmarkAddRemove(b *testing.B) {
	g, err := drain.New(&drain.Options{MaxAge: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	closer := func(int, string) error { return nil }
	for range 100_000 {
		g.Add(closer)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.Add(closer).Remove()
	}
}
