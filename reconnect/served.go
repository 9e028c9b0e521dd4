package reconnect

import (
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// served is a link with all that one session of a Conn needs besides. It is the context of the
// session's callbacks.
type served struct {
	link.Link

	delivered bool // a message of it is in the stream; belongs to the supervisor, and to OnSession while that runs
	resumed   bool // OnSession has called Resumed; likewise
	broken    bool // a Read or Write of OnSession has failed; likewise
	overlaps  bool // another session led before this one ended; belongs to the supervisor

	clock uint32 // when its dial began; once it is ready, how long the dial and OnSession took: see link.Milliseconds

	extra    *extra   // nil: none
	calling  callback // the user's function that runs in the supervisor's goroutine
	liveness watch.Liveness
}

// extra is what only some sessions have.
type extra struct {
	hint  *hint            // with which it was dialed
	aging *aging           // nil: there is no limit on its age
	idle  *watch.KeepAlive // nil: nothing is written when nothing was for a while
	stall *watch.Stall     // nil: there is no limit
	mark  *mark            // nil: the user wants none
}

// newExtra returns nil if there is nothing extra.
func newExtra(life *lifetime, h *hint) *extra {
	o := life.o.rare
	if h == nil && o.KeepAlive.Every <= 0 && o.Rotate.After <= 0 && !o.MarkRefetch && life.watch.Stall == nil {
		return nil
	}
	return &extra{hint: h, mark: newMark(o.MarkRefetch)}
}

// Value returns the life of the Conn for its key.
func (l *served) Value(key any) any {
	if key == (lifeKey{}) {
		return l.Life()
	}
	return nil
}

// hint returns the hint with which l was dialed, or nil.
func (l *served) hint() *hint {
	if l.extra == nil {
		return nil
	}
	return l.extra.hint
}

// prepare makes what watches l, which is about to be ready.
func (l *served) prepare(w *watch.Shared) {
	notes := l.liveness.Prepare(w, l.Conn)
	if x := l.extra; x != nil {
		x.idle, x.stall = watch.NewKeepAlive(w, &l.Link), watch.NewStall(w, &l.Link)
		notes = notes || x.idle != nil || x.stall != nil
	}
	if notes {
		l.Observe(l)
	}
}

// start begins to watch l, which is ready.
func (l *served) start(a *aging) {
	l.liveness.Start(&l.Link)
	if x := l.extra; x != nil {
		x.idle.Start()
		x.aging = a
		x.stall.Start()
	}
}

// stop ends what watches l, which was cut because of cause.
func (l *served) stop(w *watch.Shared, cause error) {
	l.calling.enter(&elsewhere)
	defer l.calling.leave()
	x := l.extra
	if x != nil {
		x.aging.stop()
		x.idle.Stop()
		x.mark.stop(w)
	}
	l.liveness.Stop()
	if x != nil {
		x.stall.Stop(cause)
	}
}

// NoteHeard notes a message.
func (l *served) NoteHeard() {
	l.liveness.Heard()
	if l.extra != nil {
		l.extra.stall.Heard()
	}
}

// NoteResumed notes that reading begins again.
func (l *served) NoteResumed() {
	if l.extra != nil {
		l.extra.stall.Resumed()
	}
}

// NoteWrote notes that messages were written.
func (l *served) NoteWrote() {
	if l.extra != nil {
		l.extra.idle.Wrote()
	}
}
