package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/dialer"
)

// scene is one client whose server is away for a while.
type scene struct {
	client client
	way    way
	rate   float64
	outage time.Duration
	after  time.Duration

	listen  func(network, address string) (net.Listener, error)
	address string
	tryOnce dialFunc

	tries, inProgress, made atomic.Int64
	calls                   sync.WaitGroup

	mu         sync.Mutex      // guards the fields below
	failures   []time.Duration // of each call that failed before the server was back
	back       time.Time       // when the server was back, or zero
	first      time.Time       // when the first call succeeded after that, or zero
	madeBefore int64           // connections until back
}

// result is the result of a scene.
type result struct {
	client, way      string
	calls, tries     float64       // per second, while the server was away
	inProgress       int64         // dials in progress when the server was back
	failP50, failP95 time.Duration // of the calls that failed; failP50 is -1 if none did
	back             time.Duration // from the return of the server to the first success
	made             int64         // connections since the server was back
}

// dial returns the function to dial by, which counts tries, dials in progress and connections.
func (s *scene) dial() dialFunc {
	once := func(ctx context.Context, network, address string) (net.Conn, error) {
		s.tries.Add(1)
		nc, err := s.tryOnce(ctx, network, address)
		if err == nil {
			s.made.Add(1)
		}
		return nc, err
	}
	dial := once
	if !s.way.plain {
		dial = (&dialer.Dialer{DialOnce: once, MaxElapsed: s.way.maxElapsed}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		s.inProgress.Add(1)
		defer s.inProgress.Add(-1)
		return dial(ctx, network, address)
	}
}

// run lets the client call for 2 s, through the outage, and for a time after it.
func (s *scene) run(ctx context.Context) (r result, err error) {
	l, err := s.listen("tcp", s.address)
	if err != nil {
		return r, err
	}
	address := l.Addr().String()
	stop := s.client.serve(l)
	defer func() { stop() }()
	call, closeClient, err := s.client.open(s.dial(), address)
	if err != nil {
		return r, err
	}
	calling, end := context.WithCancel(ctx)
	var caller sync.WaitGroup
	caller.Go(func() { s.call(calling, call) })
	defer func() { // before stop
		end()
		caller.Wait()
		s.calls.Wait()
		closeClient()
	}()

	if err := sleep(ctx, 2*time.Second); err != nil {
		return r, err
	}
	if s.made.Load() == 0 {
		return r, fmt.Errorf("%s by %s: no connection before the outage", s.client.name, s.way.name)
	}
	stop()
	if r, err = s.away(ctx); err != nil {
		return r, err
	}
	if l, err = s.listen("tcp", address); err != nil {
		return r, err
	}
	s.mu.Lock()
	s.back, s.madeBefore = time.Now(), s.made.Load()
	s.mu.Unlock()
	stop = s.client.serve(l)
	if err := sleep(ctx, s.after); err != nil {
		return r, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.back, r.made = s.after, s.made.Load()-s.madeBefore
	if !s.first.IsZero() {
		r.back = s.first.Sub(s.back)
	}
	return r, nil
}

// away waits until the outage is over, and returns what was measured during it.
func (s *scene) away(ctx context.Context) (result, error) {
	s.takeFailures()
	before := s.tries.Load()
	if err := sleep(ctx, s.outage); err != nil {
		return result{}, err
	}
	tries := s.tries.Load() - before
	failures := s.takeFailures()
	r := result{
		client:     s.client.name,
		way:        s.way.name,
		calls:      float64(len(failures)) / s.outage.Seconds(),
		tries:      float64(tries) / s.outage.Seconds(),
		inProgress: s.inProgress.Load(),
		failP50:    -1,
	}
	if len(failures) > 0 {
		slices.Sort(failures)
		r.failP50, r.failP95 = failures[len(failures)/2], failures[len(failures)*95/100]
	}
	return r, nil
}

// takeFailures returns the failures since the last call of it.
func (s *scene) takeFailures() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	failures := s.failures
	s.failures = nil
	return failures
}

// call makes calls at the rate, each with a limit of a second. For the loop it makes one call after
// the other, without a limit.
func (s *scene) call(ctx context.Context, call callFunc) {
	for ctx.Err() == nil {
		if s.client.loop {
			s.note(time.Now(), call(ctx))
			_ = sleep(ctx, time.Second)
			continue
		}
		s.calls.Go(func() {
			limited, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			began := time.Now()
			s.note(began, call(limited))
		})
		_ = sleep(ctx, time.Duration(float64(time.Second)/s.rate))
	}
}

// note records the end of a call.
func (s *scene) note(began time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && s.back.IsZero():
		s.failures = append(s.failures, time.Since(began))
	case err == nil && !s.back.IsZero() && s.first.IsZero():
		s.first = time.Now()
	}
}

// sleep waits for d. If ctx is done before that, it returns the cause.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
