package lab

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// endpoint is an address, and the processes that serve it one after the other.
type endpoint struct {
	address string
	running *process
	number  int // by which the counter knows the running one; -1: it does not
	waiting []numbered
}

// numbered is a process that does not listen yet.
type numbered struct {
	*process
	number int
}

// startEndpoints starts all processes of a scene. The first of each server listens when it
// returns. Those of the error's case are left to kill.
func (r *run) startEndpoints(ctx context.Context) error {
	for k := range r.Servers {
		p, err := start(setup{Address: hostOf(k) + ":0"}, nil)
		if err != nil {
			return err
		}
		r.endpoints = append(r.endpoints, &endpoint{running: p, number: -1})
		at, err := p.ask(ctx)
		if err != nil {
			return err
		}
		r.endpoints[k].address = at.Address
	}
	for i, s := range r.steps() {
		if !s.up {
			continue
		}
		y := r.endpoints[s.server]
		p, err := start(setup{Address: y.address, Capacity: r.Capacity, Reject: r.Reject, Backlog: r.waiting(), Hang: s.hang}, func(said report) { r.counter.hear(i, said) })
		if err != nil {
			return err
		}
		y.waiting = append(y.waiting, numbered{p, i})
	}
	return nil
}

// hostOf returns the loopback address of a server.
func hostOf(k int) string {
	if runtime.GOOS != "linux" { // where loopback is one address
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.0.0.%d", 1+k)
}

// killEndpoints ends all processes.
func (r *run) killEndpoints() {
	for _, s := range r.endpoints {
		s.running.Kill()
		for _, p := range s.waiting {
			p.Kill()
		}
	}
}

// play kills and restarts the servers as the scene wants, and returns when the last of them is
// back for good. It reports whether ctx ended before.
func (r *run) play(ctx context.Context) (cut bool, err error) {
	var (
		origin, back time.Time
		address      string
	)
	steps := r.steps()
	for i, s := range steps {
		if i == 0 {
			origin = time.Now()
		} else if pause(ctx, time.Until(origin.Add(s.at))) != nil {
			return true, nil
		}
		y := r.endpoints[s.server]
		if !s.up {
			if i == 0 {
				r.counter.begin(origin)
			}
			if y.number >= 0 {
				if _, err := y.running.ask(ctx); ctx.Err() == nil && err != nil { // its last counts
					return false, err
				}
			}
			for _, other := range steps[i:] {
				if other.up || other.at != s.at {
					break
				}
				r.endpoints[other.server].running.Strike() // all at one instant
			}
			y.running.Kill() // which waits until the kernel has closed all sockets
			r.counter.gone(y.number)
			if i == 0 {
				call(r.Trace.Lost)
			}
			continue
		}
		y.running, y.number, y.waiting = y.waiting[0].process, y.waiting[0].number, y.waiting[1:]
		said, err := y.running.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return true, nil
		case err != nil:
			return false, err
		}
		if s.hang < forever {
			back, address = time.Unix(0, said.At).Add(s.hang), said.Address
		}
	}
	if pause(ctx, time.Until(back)) != nil {
		return true, nil
	}
	r.counter.listens(back)
	if r.Trace.Back != nil {
		r.Trace.Back(address)
	}
	return false, nil
}
