package rotate

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// Way is how a session ends in the middle of a run.
type Way struct {
	Name    string
	rotates bool
	overlap reconnect.Overlap
	life    time.Duration // the server ends the session; 0: it does not
}

// Ways are those that are measured.
func Ways() []Way {
	return []Way{
		{Name: "undisturbed"},
		{Name: "hold", rotates: true, overlap: reconnect.OverlapHold},
		{Name: "mix", rotates: true, overlap: reconnect.OverlapMix},
		{Name: "break first", rotates: true, overlap: reconnect.OverlapBreakFirst},
		{Name: "no rotation", life: before},
	}
}

const (
	before = 500 * time.Millisecond  // from the first message to the rotation
	after  = 2500 * time.Millisecond // from then on until the end of the run, and of a wait before a redial
	drain  = 500 * time.Millisecond  // of the old session
)

// Heard is what the reader of one run has heard.
type Heard struct {
	Pause   time.Duration // the longest between two messages
	Missing int           // numbers between the first and the last that never came
	Twice   int           // messages whose number had come before
	Lost    bool          // the old session was lost before the next one was ready
}

// Pause is one run: a client that reads so many messages per second, and whose session ends as
// way says. With moves the server gives messages to the newest connection only, and closes the
// one before.
func Pause(ctx context.Context, way Way, moves bool, rate int) (Heard, error) {
	server, err := start(ctx, setup{Moves: moves, Rate: rate, Life: way.life})
	if err != nil {
		return Heard{}, err
	}
	defer server.end()
	r := &reader{seen: map[uint64]bool{}, first: make(chan struct{})}
	c, err := open(&dialer.WebSocket{URL: "ws://" + server.address}, &reconnect.Options{
		OnMessage: r.take,
		Rotate:    reconnect.Rotation{Overlap: way.overlap, Drain: drain},
	})
	if err != nil {
		return Heard{}, err
	}
	defer func() { c.Close(); <-c.Done() }()
	select {
	case <-r.first:
	case <-c.Done():
		return Heard{}, c.Err()
	case <-ctx.Done():
		return Heard{}, context.Cause(ctx)
	}
	if err := pause(ctx, before); err != nil {
		return Heard{}, err
	}
	if way.rotates {
		c.Rotate(c.Status().Session, reconnect.Advice{})
	}
	if err := pause(ctx, after); err != nil {
		return Heard{}, err
	}
	h := r.heard()
	h.Lost = c.Stats().RotationsFailed > 0
	if s := c.Stats(); way.rotates && s.Rotations+s.RotationsFailed == 0 {
		return h, fmt.Errorf("measure %s: the session was not replaced within %v", way.Name, after)
	}
	return h, nil
}

// open returns a Conn that says hello and waits for the answer.
func open(d reconnect.Dialer, o *reconnect.Options) (*reconnect.Conn, error) {
	o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
		if err := o.Write(conn.Message{Type: conn.Binary, Data: hello}); err != nil {
			return err
		}
		_, err := o.Read()
		return err
	}
	return reconnect.New(d, o)
}

// reader counts messages.
type reader struct {
	first chan struct{} // closed when the first has come

	mu     sync.Mutex // guards what follows
	seen   map[uint64]bool
	lowest uint64
	most   uint64
	twice  int
	last   time.Time
	pause  time.Duration
}

func (r *reader) take(_ context.Context, m reconnect.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, now := binary.BigEndian.Uint64(m.Data), time.Now()
	if len(r.seen) == 0 {
		r.lowest = n
		close(r.first)
	} else {
		r.pause = max(r.pause, now.Sub(r.last))
	}
	if r.seen[n] {
		r.twice++
	}
	r.seen[n] = true
	r.most = max(r.most, n)
	r.last = now
}

func (r *reader) heard() Heard {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pause = max(r.pause, time.Since(r.last))
	return Heard{Pause: r.pause, Missing: int(r.most-r.lowest+1) - len(r.seen), Twice: r.twice}
}

// pause waits, or returns the cause of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
