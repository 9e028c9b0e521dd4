package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	drainsim "github.com/redial-go/redial/bench/herd/drain"
	"github.com/redial-go/redial/reconnect/drain"
)

// way is how a server gets rid of its clients.
type way struct {
	name    string
	summary string
	make    func(s *setup) (drainer, error)
}

// ways are those that are measured.
var ways = []way{
	{"cut", "all connections are closed at once", func(s *setup) (drainer, error) {
		return newPlain(s, func(int, int) time.Duration { return 0 }), nil
	}},
	{"batches", "batches, one each 2 s, as Phoenix's PoolDrainer has them, as large as the window needs", func(s *setup) (drainer, error) {
		return newPlain(s, func(i, n int) time.Duration { return drainsim.BatchTime(i, drainsim.BatchSize(n, s.Window)) }), nil
	}},
	{"nats", "the rule of nats-server's lame duck", func(s *setup) (drainer, error) {
		at, random := time.Duration(0), rand.New(rand.NewPCG(rand.Uint64(), 0))
		return newPlain(s, func(i, n int) time.Duration {
			if i > 0 {
				at += drainsim.LameDuckPause(n, s.Window, random)
			}
			return at
		}), nil
	}},
	{"drain", "reconnect/drain: each at a draw of its own", func(s *setup) (drainer, error) {
		return newGrouped(s, false, 0)
	}},
	{"notice", "reconnect/drain with AddNotice, and clients that rotate", func(s *setup) (drainer, error) {
		return newGrouped(s, true, 0)
	}},
	{"notice all", "the same with Warn as long as the window: all are told at once", func(s *setup) (drainer, error) {
		return newGrouped(s, true, s.Window)
	}},
}

// Ways returns the names of the ways, and what each is.
func Ways() (names, summaries []string) {
	for _, w := range ways {
		names, summaries = append(names, w.name), append(summaries, w.summary)
	}
	return names, summaries
}

func findWay(name string) (way, error) {
	for _, w := range ways {
		if w.name == name {
			return w, nil
		}
	}
	names, _ := Ways()
	return way{}, fmt.Errorf("there is no way %q: there are %q", name, names)
}

// drainer is what a server needs to drain.
type drainer interface {
	// add takes a connection. remove must be called when it has ended.
	add(close func(code int, reason string) error, notice func(by time.Time)) (remove func())
	ready() bool
	handler(http.Handler) http.Handler
	drain(ctx context.Context) error
}

// grouped is a drain.Group.
type grouped struct {
	*drain.Group
	notices bool
}

func newGrouped(s *setup, notices bool, warn time.Duration) (drainer, error) {
	g, err := drain.New(&drain.Options{Window: s.Window, Lead: s.Lead, Warn: warn})
	return grouped{g, notices}, err
}

func (g grouped) add(close func(int, string) error, notice func(time.Time)) func() {
	if !g.notices {
		notice = nil
	}
	return g.AddNotice(close, notice).Remove
}

func (g grouped) ready() bool                         { return g.Ready() }
func (g grouped) handler(h http.Handler) http.Handler { return g.Handler(h) }
func (g grouped) drain(ctx context.Context) error     { return g.Drain(ctx) }

// plain closes connections one after the other, in a random order, at times of a rule.
type plain struct {
	lead time.Duration
	at   func(i, n int) time.Duration // since the end of the lead; of n, called for 0, 1, 2, ...

	mu       sync.Mutex // guards what follows
	phase    int        // 0: serving; 1: in the lead; 2: closing
	next     uint64
	members  map[uint64]func(int, string) error
	handlers sync.WaitGroup // Add only before phase 2
}

func newPlain(s *setup, at func(i, n int) time.Duration) *plain {
	return &plain{lead: s.Lead, at: at, members: map[uint64]func(int, string) error{}}
}

func (p *plain) add(close func(int, string) error, _ func(time.Time)) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.next
	p.next++
	p.members[id] = close
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.members, id)
	}
}

func (p *plain) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase == 0
}

func (p *plain) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		refused := p.phase == 2
		if !refused {
			p.handlers.Add(1)
		}
		p.mu.Unlock()
		if refused {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		defer p.handlers.Done()
		h.ServeHTTP(w, r)
	})
}

const restarting = 1012 // service restart

func (p *plain) drain(ctx context.Context) error {
	p.enter(1)
	if !sleep(ctx, p.lead) {
		return context.Cause(ctx)
	}
	all := p.enter(2)
	begun := time.Now()
	for i, close := range all {
		if !sleep(ctx, p.at(i, len(all))-time.Since(begun)) {
			return context.Cause(ctx)
		}
		_ = close(restarting, "") // it may have ended by itself
	}
	for _, close := range p.enter(2) { // those whose handshake was under way
		_ = close(restarting, "")
	}
	gone := make(chan struct{})
	go func() { // ends with the handlers, which have a limit once they are closed
		defer close(gone)
		p.handlers.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("handlers are left"), context.Cause(ctx))
	}
}

// enter begins a phase, and returns the closers of all members in a random order.
func (p *plain) enter(phase int) (all []func(int, string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = phase
	for _, close := range p.members {
		all = append(all, close)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// sleep reports whether it has slept, and ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
