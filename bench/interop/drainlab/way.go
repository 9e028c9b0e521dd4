package main

import (
	"cmp"
	"context"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/reconnect/drain"
)

// way is how a server gets rid of its clients.
type way struct {
	name    string
	summary string
	notices bool
	options func(s *setup) drain.Options
}

// ways are those that are measured.
var ways = []way{
	{"cut", "all connections are closed at once", false, func(*setup) drain.Options { return drain.Options{Window: -1} }},
	{"drain", "reconnect/drain: each at a draw of its own", false, func(s *setup) drain.Options { return drain.Options{Window: s.Window} }},
	{"notice", "reconnect/drain with AddNotice, and clients that rotate", true, func(s *setup) drain.Options { return drain.Options{Window: s.Window} }},
	{"notice all", "the same with Warn as long as the window: all are told at once", true, func(s *setup) drain.Options {
		return drain.Options{Window: s.Window, Warn: s.Window}
	}},
}

func nameOf(w way) string { return w.name }

func findWay(name string) (way, error) { return pick.One("way", name, ways, nameOf) }

// group returns the group of a server that drains in this way.
func (w way) group(s *setup) (*drain.Group, error) {
	o := w.options(s)
	o.Lead = cmp.Or(s.Lead, -1)
	return drain.New(&o)
}

// sleep reports whether it has slept, and ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
