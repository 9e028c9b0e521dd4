package reconnect

import (
	"context"
	"net"

	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// served is a link with all that one session of a Conn needs besides. It is the context of the session's callbacks.
type served struct {
	link.Link

	delivered bool   // a message of it is in the stream; belongs to the supervisor, and to OnSession while that runs
	resumed   bool   // OnSession has called Resumed; likewise
	broken    bool   // a Read or Write of OnSession has failed; likewise
	overlaps  bool   // another session led before this one ended; belongs to the supervisor
	ending    ending // how it has ended; set by teardown, belongs to the supervisor

	clock uint32 // when its dial began; once it is ready, how long the dial and OnSession took: see link.Milliseconds

	extra    *extra
	calls    *watch.Calls // those of its supervisor
	liveness watch.Liveness
}

// extra is what only some sessions have. The others share noExtra.
type extra struct {
	hint      *hint            // with which it was dialed
	advised   bool             // it was dialed at the address of the hint
	aging     *aging           // nil: there is no limit on its age
	keepAlive *watch.KeepAlive // nil: nothing is written when nothing was for a while
	stall     *watch.Stall     // nil: there is no limit
	mark      *mark            // nil: the user wants none
}

var noExtra = &extra{}

func newExtra(life *lifetime, h *hint) *extra {
	o := &life.o
	if h == nil && o.KeepAlive.Every <= 0 && o.Rotate.After <= 0 && !o.MarkRefetch && life.watch.Stall == nil {
		return noExtra
	}
	x := &extra{hint: h}
	if o.MarkRefetch {
		x.mark = &mark{holds: 1}
	}
	return x
}

// Value returns the life of the Conn for its key.
func (l *served) Value(key any) any {
	if key == (lifeKey{}) {
		return l.Life()
	}
	return nil
}

// prepare makes what watches l, which is about to be ready.
func (l *served) prepare(w *watch.Shared) {
	notes := l.liveness.Prepare(w, l.Conn)
	if x := l.extra; x != noExtra {
		x.keepAlive, x.stall = watch.NewKeepAlive(w, &l.Link), watch.NewStall(w, &l.Link)
		notes = notes || x.keepAlive != nil || x.stall != nil
	}
	if notes {
		l.Observe(l)
	}
}

// start begins to watch l, which is ready.
func (l *served) start(a *aging) {
	l.liveness.Start(&l.Link)
	l.extra.keepAlive.Start()
	if a != nil {
		l.extra.aging = a
	}
	l.extra.stall.Start()
}

// stop ends what watches l, which was cut because of cause.
func (l *served) stop(w *watch.Shared, cause error) {
	outer := l.calls.Enter(&watch.Elsewhere)
	defer l.calls.Leave(outer)
	l.extra.aging.stop()
	l.extra.keepAlive.Stop()
	l.extra.mark.stop(w)
	l.liveness.Stop()
	l.extra.stall.Stop(cause)
}

// block waits until ready is closed, or until ctx or l ends. Meanwhile nobody reads l, and afterwards it is
// still paused.
func (l *served) block(ctx context.Context, ready <-chan struct{}) error {
	l.Pause(link.Blocked)
	l.liveness.Blocked()
	select {
	case <-ready:
		return nil
	case <-l.Done():
		return l.Cause(net.ErrClosed)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// NoteHeard notes a message.
func (l *served) NoteHeard() {
	l.liveness.Heard()
	l.extra.stall.Heard()
}

// NoteResumed notes that reading begins again.
func (l *served) NoteResumed() { l.extra.stall.Resumed() }

// NoteWrote notes that messages were written.
func (l *served) NoteWrote() { l.extra.keepAlive.Wrote() }
