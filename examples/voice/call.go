//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// plan says what call is to be held.
type plan struct {
	length  time.Duration // of the call
	life    time.Duration // of a connection, at the service
	warn    time.Duration // how long before its end the service says so
	rotate  bool          // the caller heeds that
	overlap reconnect.Overlap
	rand    rand.Source // nil: a random one
	trace   *reconnect.Trace
}

func (p *plan) validate() error {
	switch {
	case p.length < every:
		return fmt.Errorf("-for must be at least %v, which is a frame, not %v", every, p.length)
	case p.warn <= 0:
		return fmt.Errorf("-warn must be above 0, not %v", p.warn)
	case p.life <= p.warn:
		return fmt.Errorf("-life must be longer than -warn: it is %v, and -warn is %v", p.life, p.warn)
	}
	return nil
}

// endLimit is how long the last frames may take.
const endLimit = 10 * time.Second

// hold holds a call with s, which d reaches.
func (p *plan) hold(ctx context.Context, d reconnect.Dialer, s *service) (*result, error) {
	limit := fmt.Errorf("the call was not over %v after its end", endLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, p.length+endLimit, limit)
	defer cancel()
	c, err := newCaller(d, p)
	if err != nil {
		return nil, err
	}
	spoken := make(chan error, 1)
	go func() { // <-spoken waits for it
		spoken <- c.speak(ctx, int(p.length/every))
	}()
	err = c.listen(ctx)
	if err != nil {
		cancel() // because there is nobody to speak to
	}
	if failed := <-spoken; err == nil {
		err = failed
	}
	leave, left := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer left()
	c.line.Shutdown(leave) // its error is that the service has not answered in time
	r := &result{compare(&c.said, &s.heard), compare(&s.said, &c.heard), c.line.Stats(), err}
	if err == nil {
		r.err = errors.Join(r.toService.fault("caller to service"), r.toCaller.fault("service to caller"))
	}
	return r, nil
}

// result is what came of a call.
type result struct {
	toService, toCaller direction
	stats               reconnect.Stats
	err                 error // nil: every frame came once
}

// direction is what came of the frames that one end said.
type direction struct {
	said, heard, missing, twice int
	pause                       time.Duration // the longest between two frames that were heard
}

// compare is called when nobody speaks any more.
func compare(said, heard *tally) direction {
	said.mu.Lock()
	defer said.mu.Unlock()
	heard.mu.Lock()
	defer heard.mu.Unlock()
	return direction{said.frames, heard.frames, said.frames + heard.twice - heard.frames, heard.twice, heard.pause}
}

func (d direction) String() string {
	return fmt.Sprintf("%d sent, %d received, %d missing, %d twice, longest pause %v", d.said, d.heard, d.missing, d.twice, d.pause.Round(time.Millisecond))
}

func (d direction) fault(name string) error {
	if d.missing+d.twice == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d frames are missing, and %d came twice", name, d.missing, d.twice)
}

// tally counts the frames that one end has said, or heard. Any goroutine may call its methods.
// The zero value is ready.
type tally struct {
	mu     sync.Mutex // guards what follows
	seen   map[uint64]bool
	frames int
	twice  int           // frames that were not new
	pause  time.Duration // the longest between two frames
	last   time.Time     // when the last frame came
}

// frame notes that frame n has come.
func (t *tally) frame(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.seen == nil {
		t.seen, t.last = map[uint64]bool{}, now
	}
	if t.seen[n] {
		t.twice++
	}
	t.seen[n] = true
	t.frames++
	t.pause, t.last = max(t.pause, now.Sub(t.last)), now
}
