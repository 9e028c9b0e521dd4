package reconnect

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Log returns a Trace that writes to l, with the connection's name if any, at these levels:
//
//   - Info: a session is ready or has ended, a handshake hangs, an ordinary wait, a wait for a login, a
//     requested end.
//   - Warn: an ignored address, a wait until a person acts (a verdict of ClassSlow), a wait after a
//     repeated rejection (the same error of OnSession or serve, or close code from 3000 on), a wait
//     after three failed dials of a rotation, any other permanent end, a slow handler, an overdue
//     function.
//   - Debug: dials, probes and the gate.
//
// Of equal lines about waits, ended sessions, hung handshakes and ignored addresses Log writes only the
// first, second, fourth, eighth and so on, from the fourth on with the attribute count, which includes
// omitted lines. Lines are equal if they differ only in the name, in numbers, in durations and in the
// ports within the cause. The count resets after 10 min without such a line. Connections that share a
// Trace are counted together.
//
// The wait in a line is the whole time until the next dial; retry_after is the part that the server or
// the budget of logins requested, if any.
func Log(l *slog.Logger) *Trace {
	log := logger(func(level slog.Level, msg, name string, attrs ...slog.Attr) {
		if name != "" {
			attrs = append([]slog.Attr{slog.String("name", name)}, attrs...)
		}
		l.LogAttrs(context.Background(), level, msg, attrs...)
	})
	often := log.thinned(new(repeats))
	return &Trace{
		GateDone: func(g GateDone) {
			log(slog.LevelDebug, "gate passed", g.Name, slog.String("host", g.Host),
				slog.Duration("took", g.Took), cause(g.Err))
		},
		DialDone: func(d DialDone) {
			log(slog.LevelDebug, "dialed", d.Name, slog.Int("try", d.Try), slog.Duration("took", d.Took), cause(d.Err))
		},
		AddressIgnored: func(a AddressIgnored) {
			often(slog.LevelWarn, "advised address ignored", a.Name, cause(a.Err))
		},
		DialHung: func(d DialHung) {
			often(slog.LevelInfo, "handshake not answered, dialing beside it", d.Name,
				slog.Int("try", d.Try), slog.Duration("since", d.Since))
		},
		SessionReady: func(s *Session) {
			log(slog.LevelInfo, "session ready", s.Name, slog.Uint64("session", s.Number),
				slog.Duration("downtime", s.Downtime))
		},
		SessionDone: func(e SessionDone) {
			often(slog.LevelInfo, "session ended", e.Name, slog.Uint64("session", e.Session),
				slog.Duration("uptime", e.Uptime), slog.Duration("ready", e.Ready), cause(e.Cause))
		},
		WaitStart: often.waitStart,
		ConnDone:  log.connDone,
		ProbeDone: func(p ProbeDone) {
			log(slog.LevelDebug, "probed", p.Name, slog.Uint64("session", p.Session),
				slog.Duration("took", p.Took), cause(p.Err))
		},
		SlowHandler: func(s SlowHandler) {
			log(slog.LevelWarn, "callback is slow", s.Name,
				slog.String("what", s.What), slog.Uint64("session", s.Session), slog.Duration("since", s.Since))
		},
		Overdue: log.overdue,
	}
}

// logger writes one line.
type logger func(level slog.Level, msg, name string, attrs ...slog.Attr)

// patientTries is the number of failed dials of a rotation from which on Log warns: nothing else in
// the log shows them, because there is no outage.
const patientTries = 3

// thinned returns a logger that leaves out most of the equal lines. It compares the level, the
// message and the attributes that are text.
func (log logger) thinned(r *repeats) logger {
	return func(level slog.Level, msg, name string, attrs ...slog.Attr) {
		event := level.String() + " " + msg
		for _, a := range attrs {
			if a.Value.Kind() == slog.KindString {
				event += " " + withoutPorts(a.Value.String())
			}
		}
		n := r.add(event, time.Now())
		if n&(n-1) != 0 { // not a power of two
			return
		}
		if n > 2 {
			attrs = append(attrs, slog.Int("count", n))
		}
		log(level, msg, name, attrs...)
	}
}

func (log logger) waitStart(w WaitStart) {
	level, msg := slog.LevelInfo, "waiting to redial"
	var session, retryAfter slog.Attr // an empty one is left out
	if backoff.ReasonOf(w.Cause) == backoff.ReasonLogins {
		msg = "waiting for a login"
	}
	if w.replaces != 0 {
		msg, session = "waiting to dial replacement", slog.Uint64("session", w.replaces)
	}
	rotationFails := w.replaces != 0 && w.Try > patientTries
	if w.Verdict.Class >= backoff.ClassSlow || w.again || rotationFails {
		level = slog.LevelWarn
	}
	if w.Verdict.RetryAfter > 0 {
		retryAfter = slog.Duration("retry_after", w.Verdict.RetryAfter)
	}
	log(level, msg, w.Name, session, slog.Int("try", w.Try), slog.Duration("wait", w.Verdict.RetryAfter+w.Drawn),
		retryAfter, slog.String("verdict", w.Verdict.Class.String()), cause(w.Cause))
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
	msg := "function has not returned"
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
