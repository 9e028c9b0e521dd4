package reconnect

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Log returns a Trace that writes lines to l, with the connection's name if it has one. The
// levels are:
//
//   - Info: a session is ready or has ended, a handshake hangs, an ordinary wait, a wait for a
//     login, the end that the program itself asked for (by Close, Shutdown, or the context of Run).
//   - Warn: an address that was advised and not followed, a wait until somebody mends something
//     (a verdict of ClassSlow), a wait after a session that was refused as one before it (the same error
//     of OnSession or serve, or close code from 3000 on), any other end for good, a slow handler, an overdue function.
//   - Debug: dials, probes and the gate.
//
// The wait in a line is all of the time until the next dial; retry_after is the part of it
// that the server, or the budget of logins, asked for, if one of them did.
func Log(l *slog.Logger) *Trace {
	log := logger(func(level slog.Level, msg, name string, attrs ...slog.Attr) {
		if name != "" {
			attrs = append([]slog.Attr{slog.String("name", name)}, attrs...)
		}
		l.LogAttrs(context.Background(), level, msg, attrs...)
	})
	return &Trace{
		GateDone: func(g GateDone) {
			log(slog.LevelDebug, "gate passed", g.Name, slog.String("host", g.Host), slog.Duration("took", g.Took), cause(g.Err))
		},
		DialDone: func(d DialDone) {
			log(slog.LevelDebug, "dialed", d.Name, slog.Int("try", d.Try), slog.Duration("took", d.Took), cause(d.Err))
		},
		AddressIgnored: func(a AddressIgnored) { log(slog.LevelWarn, "advised address ignored", a.Name, cause(a.Err)) },
		DialHung: func(d DialHung) {
			log(slog.LevelInfo, "handshake not answered, dialing beside it", d.Name, slog.Int("try", d.Try), slog.Duration("since", d.Since))
		},
		SessionReady: func(s *Session) {
			log(slog.LevelInfo, "session ready", s.Name, slog.Uint64("session", s.Number), slog.Duration("downtime", s.Downtime))
		},
		SessionDone: func(e SessionDone) {
			log(slog.LevelInfo, "session ended", e.Name, slog.Uint64("session", e.Session), slog.Duration("uptime", e.Uptime),
				slog.Duration("ready", e.Ready), cause(e.Cause))
		},
		WaitStart: log.waitStart,
		ConnDone:  log.connDone,
		ProbeDone: func(p ProbeDone) {
			log(slog.LevelDebug, "probed", p.Name, slog.Uint64("session", p.Session), slog.Duration("took", p.Took), cause(p.Err))
		},
		SlowHandler: func(s SlowHandler) {
			log(slog.LevelWarn, "a callback is slow: the peer is not read", s.Name, slog.Uint64("session", s.Session), slog.Duration("since", s.Since))
		},
		Overdue: log.overdue,
	}
}

// logger writes one line.
type logger func(level slog.Level, msg, name string, attrs ...slog.Attr)

func (log logger) waitStart(w WaitStart) {
	level, msg, told := slog.LevelInfo, "waiting to redial", slog.Attr{}
	if backoff.ReasonOf(w.Cause) == backoff.ReasonLogins {
		msg = "waiting for a login"
	}
	if w.Verdict.Class >= backoff.ClassSlow || w.again {
		level = slog.LevelWarn
	}
	if w.Verdict.RetryAfter > 0 {
		told = slog.Duration("retry_after", w.Verdict.RetryAfter)
	}
	log(level, msg, w.Name, slog.Int("try", w.Try), slog.Duration("wait", w.Verdict.RetryAfter+w.Drawn),
		told, slog.String("verdict", w.Verdict.Class.String()), cause(w.Cause))
}

func (log logger) connDone(e ConnDone) {
	level := slog.LevelInfo
	_, byItself := errors.AsType[*EndError](e.Err) // which is net.ErrClosed too
	if byItself || !e.asked && !errors.Is(e.Err, net.ErrClosed) && !errors.Is(e.Err, context.Canceled) {
		level = slog.LevelWarn
	}
	log(level, "ended", e.Name, cause(e.Err))
}

func (log logger) overdue(o Overdue) {
	msg := "function should have returned"
	if o.What == "reader" {
		msg = "nobody reads, and the inbox is full"
	}
	log(slog.LevelWarn, msg, o.Name, slog.String("what", o.What), slog.Duration("since", o.Since))
}

// cause returns err as an attribute, or an empty one if err is nil. The text has no secrets,
// and the handler quotes it.
func cause(err error) slog.Attr {
	if err == nil {
		return slog.Attr{}
	}
	return slog.String("cause", err.Error())
}

// refusal is how the peer has refused the last session that it refused: a close code, or the text of an error. It is
// empty if the peer has refused none. It belongs to the supervisor's goroutine. Log warns if a refusal comes again.
type refusal string

// note notes the error by which a session has ended, and reports whether the peer has refused the session as it did
// the last one that it refused. answered says that the error is the answer to a login. ready is how long the session
// was ready: after an hour the refusal before it is forgotten.
func (r *refusal) note(err error, answered bool, ready time.Duration) (again bool) {
	var closed interface{ CloseCode() int }
	text := ""
	switch {
	case errors.As(err, &closed) && closed.CloseCode() >= 3000: // without the reason, which may differ each time
		text = strconv.Itoa(closed.CloseCode())
	case answered && err != errServed:
		text = err.Error()
	}
	if again = text != "" && text == string(*r); text != "" || ready >= time.Hour {
		*r = refusal(text)
	}
	return again
}
