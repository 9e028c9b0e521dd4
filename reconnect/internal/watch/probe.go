package watch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// probing is a probe that is under way. Its context ends after a limit, which is measured in
// pulses: time for which the process was stopped does not count.
type probing struct {
	cancel context.CancelCauseFunc
	soon   bool          // it takes no longer than that of a Check, which does not cancel it
	asks   atomic.Bool   // Probe is in progress, and not a ping or a hook
	pulse  time.Duration // for which timer is set at most
	timer  xsync.Timer   // calls beat

	// Owned by the timer's callback.
	end     link.Instant  // when the context ends
	midWait link.Instant  // the middle of the time for which the timer was set
	stopped time.Duration // for which the process was stopped
}

// begin begins to measure the limit.
func (p *probing) begin(limit time.Duration) {
	p.pulse, p.end = pulse(limit), link.Now()+limit
	p.wait()
}

// wait sets the timer to the next beat.
func (p *probing) wait() {
	at := link.Now()
	d := min(p.end-at, p.pulse)
	p.midWait = at + d/2
	p.timer.Set(d, p.beat)
}

// beat is the timer's callback.
func (p *probing) beat() {
	stopped := stopped(link.Now()-p.midWait, p.pulse)
	p.stopped += stopped
	if p.end += stopped; p.end > link.Now() {
		p.wait()
		return
	}
	p.cancel(context.DeadlineExceeded)
}

// finish ends the context, and returns for how long the process was stopped.
func (p *probing) finish() time.Duration {
	p.timer.Stop()
	p.timer.Wait()
	p.cancel(context.Canceled)
	return p.stopped
}

// probe carries out a probe. It reports false if the link was lost; a missing answer alone is no loss.
func (w *Liveness) probe(a action) (ok bool) {
	parent, release := xsync.Child(&w.link.Context)
	defer release()
	ctx, cancel := context.WithCancelCause(parent)
	p := &probing{cancel: cancel, soon: a.answerWithin <= checkLimit}
	w.probing.Store(p)
	if w.timer.Stopped() || w.check.Load() != 0 && !p.soon { // perhaps before Stop or Check could cancel the probe
		w.probing.Store(nil)
		cancel(context.Canceled)
		w.silence.gaveWay(link.Now(), a)
		return true
	}
	start := time.Now()
	w.link.Life().Counts.Probes.Add(1)
	w.shared.Time("Trace.ProbeStart", w.link, func() { w.shared.Report.ProbeStart(w.link.Session, a.silence) })
	w.link.HeldByWindow()
	asked := link.Now() // after the hook, which takes nothing of the peer's time
	limit := w.silence.began(asked, a)
	p.begin(limit)
	err := w.askFor(ctx, p, limit)
	w.probing.Store(nil)
	timeout := ctx.Err() != nil
	stopped := p.finish()
	w.silence.excuse(stopped)
	if w.link.HeldByWindow() {
		w.silence.held()
	} else {
		w.silence.wrote(asked+stopped, a)
	}
	w.shared.Time("Trace.ProbeDone", w.link, func() {
		w.shared.Report.ProbeDone(w.link.Session, time.Since(start), err)
	})
	if err == nil || timeout || w.link.Life().Leaving.Load() {
		return true
	}
	if !w.link.Lost() { // else Ping or a write has failed
		w.link.Cut(err)
	}
	return false
}

// askFor asks for a sign of life, by Probe or else by a ping. ctx ends after limit.
func (w *Liveness) askFor(ctx context.Context, p *probing, limit time.Duration) (err error) {
	ask := w.shared.Liveness.Probe
	if ask == nil {
		return w.ping(ctx)
	}
	w.silence.await()
	write := func(m conn.Message) error { return w.link.WriteFirst(ctx, m) }
	xsync.Guard(func() {
		p.asks.Store(true)
		Time(w.shared.Report, limit+OverdueAfter, "Probe", w.link, func() { err = ask(ctx, write) })
		p.asks.Store(false)
	}, func() { w.link.Cut(fmt.Errorf("Liveness.Probe: %w", xsync.ErrNotReturned)) })
	return err
}

// ping waits for the answer to a ping. The answer is a sign of life, whatever the clock says of the
// last byte. If the session ends before the answer and before the limit, the error is a context.Canceled.
func (w *Liveness) ping(ctx context.Context) error {
	if err := w.link.AwaitPing(ctx); err != nil {
		return err
	}
	asked := link.Now()
	err := w.link.Conn.(conn.Pinger).Ping(ctx)
	switch {
	case err == nil:
		w.Heard()
		took := link.Now() - asked
		w.link.Life().Counts.RoundTrip.Store(int64(took))
		if w.silence.answered(took, w.limits()) {
			w.shared.patience.Store(0)
		}
		return nil
	case ctx.Err() == nil && !w.link.Life().Leaving.Load():
		w.link.Fail(err)
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		err = fmt.Errorf("%w, because the session has ended: %w", context.Canceled, err)
	}
	return err
}
