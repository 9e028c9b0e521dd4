package reconnect

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Idle says what is written when nothing was written for a while, for a service that wants to
// hear from its clients, such as every 8 s. It is no probe: nobody waits for an answer. See
// [Liveness] for those.
type Idle struct {
	// After is for how long nothing was written. Pings do not count. Default, and negative:
	// for ever.
	After time.Duration

	// Message returns the message to write, and must return at once. It is called in the
	// goroutine of a timer. A message that cannot be written ends the session. Message is an
	// error without After, and After is one without Message.
	Message func() conn.Message
}

func (o *Idle) validate() error {
	switch {
	case o.After > 0 && o.Message == nil:
		return errors.New("reconnect: Options.Idle.After without Message: nothing to write")
	case o.After <= 0 && o.Message != nil:
		return errors.New("reconnect: Options.Idle.Message without After is never written")
	}
	return nil
}

// idler writes a message when its link was not written to for a while. A nil idler does
// nothing.
type idler struct {
	life  *lifetime
	link  *link
	last  atomic.Int64 // when something was written last
	timer xsync.Timer  // calls tick
}

// newIdler returns nil if there is nothing to write.
func newIdler(life *lifetime, l *link) *idler {
	if life.o.more.Idle.After <= 0 {
		return nil
	}
	return &idler{life: life, link: l}
}

// start begins to watch the link, which is ready.
func (w *idler) start() {
	if w != nil {
		w.wrote()
		w.timer.Set(w.life.o.more.Idle.After, w.tick)
	}
}

// wrote notes that something was written.
func (w *idler) wrote() {
	if w != nil {
		w.last.Store(int64(now()))
	}
}

// tick is the timer's callback.
func (w *idler) tick() {
	after := w.life.o.more.Idle.After
	if left := instant(w.last.Load()) + after - now(); left > 0 {
		w.timer.Set(left, w.tick)
		return
	}
	if err := w.write(); err != nil {
		if !w.life.leaving.Load() && !w.link.lost() { // else the write has failed
			w.link.cut(err)
		}
		return
	}
	w.timer.Set(after, w.tick)
}

// write writes the message.
func (w *idler) write() (err error) {
	xsync.Guard(func() {
		if err = w.link.writeFirst(w.link, w.life, w.life.o.more.Idle.Message()); err == nil {
			w.life.counts.idle.Add(1)
		}
	}, func() { err = fmt.Errorf("Idle.Message: %w", errNotReturned) })
	if errors.Is(err, context.Canceled) {
		return nil // the session has ended
	}
	return err
}

// stop stops the timer, and waits for its callback. The link is cut already.
func (w *idler) stop() {
	if w != nil {
		w.timer.Stop()
		w.life.waitForTimer(&w.timer, "Idle.Message")
	}
}
