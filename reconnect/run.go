package reconnect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Run keeps one connection alive: it dials, gives the connection to serve, closes
// it when serve returns, judges why, waits, and dials again. It runs in the
// caller's goroutine and returns when ctx ends (with [context.Cause]), when the
// verdict on an error is Stop (with that error) or when the policy gives up (with
// an error that is [backoff.ErrGaveUp] and the last error). A nil from serve is
// redialled like any loss. A bad option is returned at once.
//
// The boundary of serve is the seam between two connections: what lives in one
// call of it never meets another connection. serve should call [Session.Ready]
// once the session is of use; until then it counts as a failed attempt, and
// without it waits never start again from the first.
//
// dial runs in a goroutine that Run waits for. Its context carries a
// [backoff.Try] and ends after the try's two limits together; a connection that
// it brings back when ctx has ended is closed. When ctx ends while serve runs,
// the connection is closed under it, so Close must be safe to call at any time
// and more than once.
func Run[C io.Closer](ctx context.Context, dial func(context.Context) (C, error),
	serve func(ctx context.Context, c C, s *Session) error, o *RunOptions) error {
	if dial == nil || serve == nil {
		return errors.New("reconnect: Run needs a dial and a serve function")
	}
	opts, err := o.withDefaults()
	if err != nil {
		return err
	}
	return supervise(ctx, dial, serve, opts, nil)
}

// supervise is Run for options that are complete. A Conn, which could do all of
// it with a Trace and a Kick of its own, is told directly instead, which saves 700
// bytes each.
func supervise[C io.Closer](ctx context.Context, dial func(context.Context) (C, error),
	serve func(context.Context, C, *Session) error, o *RunOptions, owner *Conn) error {
	s := &supervisor[C]{dial: dial, serve: serve, o: o, owner: owner, lost: time.Now()}
	s.outage.Begin(s.lost)
	err := owner.ending(s.run(ctx))
	o.Trace.end(err)
	return err
}

// supervisor is the state of one Run. It belongs to Run's goroutine.
type supervisor[C io.Closer] struct {
	dial  func(context.Context) (C, error)
	serve func(context.Context, C, *Session) error
	o     *RunOptions
	owner *Conn // nil: none

	outage backoff.Outage
	step   backoff.Step    // the last wait, and the limits on the try after it
	tries  int             // since the last stable session
	n      uint64          // sessions so far
	cause  error           // why the last one ended
	ruling backoff.Verdict // on what the last attempt returned
	lost   time.Time       // when the last ready one ended, or the start

	served signal // serve has returned, to those who ended it
	over   atomic.Bool
	cuts   sync.WaitGroup
}

// run is the state machine: dial, serve, judge, wait. It and what it calls down
// to serve have small frames, and leave what needs more to functions that have
// returned by then: this stack waits for messages as long as the session lasts,
// and what is on it decides whether a connection costs 4 or 8 KiB of stack.
func (s *supervisor[C]) run(ctx context.Context) error {
	for {
		err := s.attempt(ctx)
		if again, end := s.judge(ctx, err); !again {
			return end
		}
	}
}

// attempt is one try, and the session that comes of it.
func (s *supervisor[C]) attempt(ctx context.Context) error {
	c, session, err := s.connect(ctx)
	if err != nil {
		return err
	}
	err = s.hold(ctx, c, session)
	return s.lose(ctx, session, err)
}

// judge says whether to try again, and has then waited for as long as that takes.
func (s *supervisor[C]) judge(ctx context.Context, err error) (again bool, end error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	step, ok := s.outage.Next(s.o.Policy, s.ruling, time.Now(), s.o.random())
	verdict := s.outage.Attempt().Verdict
	switch {
	case verdict.Class == backoff.ClassStop:
		return false, err
	case !ok:
		return false, fmt.Errorf("%w after %d tries: %w", backoff.ErrGaveUp, s.tries, err)
	}
	s.step = step
	if !s.wait(ctx, Wait{Try: s.tries, Cause: err, Verdict: verdict, Drawn: step.Wait}) {
		return false, context.Cause(ctx)
	}
	return true, nil
}

// errServed is the cause of a session whose serve function returned nil.
var errServed = errors.New("session ended by its owner")

// connect passes the gate and dials.
func (s *supervisor[C]) connect(ctx context.Context) (c C, session *Session, err error) {
	done, err := s.enter(ctx)
	if err != nil {
		s.ruling = s.o.judge(err)
		return c, nil, err
	}
	c, err = s.try(ctx)
	s.tries++
	if err != nil {
		s.ruling = s.o.judge(err)
		done(s.told(ctx))
		return c, nil, err
	}
	s.n++
	now := time.Now()
	session = &Session{N: s.n, Cause: s.cause, Downtime: now.Sub(s.lost), start: now, admitted: done, trace: s.o.Trace}
	s.owner.opening(c, s.n)
	s.o.Trace.sessionStart(session)
	return c, session, nil
}

// lose notes that a session has ended, and why.
func (s *supervisor[C]) lose(ctx context.Context, session *Session, err error) error {
	if err == nil {
		err = errServed
	}
	s.ruling = s.o.judge(err)
	session.leave(s.told(ctx))
	s.cause = err
	now := time.Now()
	end := SessionEnd{N: session.N, Cause: err, Uptime: now.Sub(session.start)}
	if ready, ok := session.readyAt(); ok {
		s.lost = now
		end.Ready = now.Sub(ready)
		if end.Ready >= max(s.o.StableAfter, s.step.Wait) {
			s.outage, s.step, s.tries = backoff.Outage{}, backoff.Step{}, 0
			s.outage.Begin(now)
			end.Stable = true
		}
	}
	s.o.Trace.sessionDone(end)
	return err
}

// told is what the gate is told of the last attempt: nothing about the host if it
// ended only because ctx did.
func (s *supervisor[C]) told(ctx context.Context) backoff.Verdict {
	if ctx.Err() != nil {
		return backoff.Verdict{Class: backoff.ClassStop}
	}
	return s.ruling
}

// enter waits at the gate, if there is one.
func (s *supervisor[C]) enter(ctx context.Context) (func(backoff.Verdict), error) {
	if s.o.Gate == nil {
		return func(backoff.Verdict) {}, nil
	}
	s.owner.connecting()
	s.o.Trace.gateStart(s.o.Host)
	start := time.Now()
	done, err := s.o.Gate.Acquire(ctx, s.o.Host)
	s.o.Trace.gateDone(s.o.Host, time.Since(start), err)
	if err != nil {
		return nil, fmt.Errorf("gate %s: %w", s.o.Host, err)
	}
	return done, nil
}

// try runs dial in a goroutine of its own, since a handshake needs much stack.
func (s *supervisor[C]) try(ctx context.Context) (C, error) {
	try := s.outage.Try(s.step)
	limit := s.patience(try)
	ctx2, cancel := context.WithTimeout(backoff.WithTry(ctx, try), limit)
	defer cancel()

	s.owner.connecting()
	s.o.Trace.dialStart(DialStart{Try: s.tries, Limit: limit})
	start := time.Now()
	var c C
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err = s.dial(ctx2)
	}()
	select {
	case <-done:
	case <-ctx2.Done():
		s.o.Trace.waitFor(done, "dial", s.owner)
	}
	if err == nil && ctx2.Err() != nil {
		c.Close() // it came too late
		err = fmt.Errorf("dial: %w", context.Cause(ctx2))
	}
	s.o.Trace.dialDone(DialDone{Try: s.tries, Took: time.Since(start), Err: err})
	return c, err
}

// patience is how long one whole try may take.
func (s *supervisor[C]) patience(t backoff.Try) time.Duration {
	if s.owner != nil {
		d, ok := s.owner.dialer.(interface {
			Patience(backoff.Try) time.Duration
		})
		if ok {
			return d.Patience(t)
		}
	}
	connect, handshake := t.Connect, t.Handshake
	if connect <= 0 {
		connect = backoff.DefaultConnect
	}
	if handshake <= 0 {
		handshake = backoff.DefaultHandshake
	}
	return connect + handshake
}

// hold gives c to serve and closes it afterwards, or when ctx ends.
func (s *supervisor[C]) hold(ctx context.Context, c C, session *Session) error {
	s.cuts.Add(1)
	stop := afterFunc(ctx, func() {
		defer s.cuts.Done()
		c.Close()
		if served := s.served.wait(); !s.over.Load() {
			s.o.Trace.waitFor(served, "serve", s.owner)
		}
	})
	err := s.serve(ctx, c, session)
	if stop() {
		s.cuts.Done()
	} else {
		s.over.Store(true) // ctx has ended, so this was the last session
		s.served.broadcast()
		s.cuts.Wait()
	}
	c.Close()
	return err
}

// wait waits for what the server told us and then for what the policy drew, and
// reports whether ctx lasted. Only the second part can be cut short.
func (s *supervisor[C]) wait(ctx context.Context, w Wait) bool {
	kick := s.kick()
	s.owner.waiting(w)
	s.o.Trace.waitStart(w)
	start := time.Now()
	kicked, ok := false, true
	if w.Verdict.RetryAfter > 0 {
		_, ok = sleep(ctx, w.Verdict.RetryAfter, nil)
		kick = s.kick() // kicks until now do not count
		s.kicked()
	}
	if kicked = s.kicked(); ok && !kicked && w.Drawn > 0 {
		kicked, ok = sleep(ctx, w.Drawn, kick)
	}
	s.o.Trace.waitDone(WaitDone{Try: w.Try, Took: time.Since(start), Kicked: kicked})
	return ok && ctx.Err() == nil
}

// kick returns what cuts a wait.
func (s *supervisor[C]) kick() <-chan struct{} {
	if s.owner != nil {
		return s.owner.kick.wait()
	}
	return s.o.Kick
}

// kicked reports whether a kick came before the wait had begun.
func (s *supervisor[C]) kicked() bool {
	return s.owner != nil && s.owner.kicked.Swap(false)
}

// sleep lasts d, or until kick or ctx ends it.
func sleep(ctx context.Context, d time.Duration, kick <-chan struct{}) (kicked, ok bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return false, true
	case <-kick:
		return true, true
	case <-ctx.Done():
		return false, false
	}
}
