package reconnect

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Log returns a Trace that writes lines to l, with the connection's name if it has one. The
// levels are:
//
//   - Info: a session is ready or has ended, a handshake hangs, an ordinary wait, the end that
//     the program itself asked for.
//   - Warn: an address that was advised and not followed, a wait because of what somebody has
//     to mend (a verdict of ClassSlow), any other end for good, a slow handler, what is overdue.
//   - Debug: dials, probes and the gate.
//
// The wait in a line is all of the time until the next dial; retry_after is the part of it
// that the server asked for, if it did.
func Log(l *slog.Logger) *Trace {
	log := logger{l}
	return &Trace{
		GateDone: func(g GateDone) {
			log.debug("gate passed", g.Name, slog.String("host", g.Host), slog.Duration("took", g.Took), cause(g.Err))
		},
		DialDone: func(d DialDone) {
			log.debug("dialed", d.Name, slog.Int("try", d.Try), slog.Duration("took", d.Took), cause(d.Err))
		},
		AddressIgnored: func(a AddressIgnored) { log.warn("advised address ignored", a.Name, cause(a.Err)) },
		DialHung: func(d DialHung) {
			log.info("handshake not answered, dialing beside it", d.Name, slog.Int("try", d.Try), slog.Duration("since", d.Since))
		},
		SessionReady: func(s *Session) {
			log.info("session ready", s.Name, slog.Uint64("session", s.Number), slog.Duration("downtime", s.Downtime))
		},
		SessionDone: func(e SessionDone) {
			log.info("session ended", e.Name, slog.Uint64("session", e.Session), slog.Duration("uptime", e.Uptime),
				slog.Duration("ready", e.Ready), cause(e.Cause))
		},
		WaitStart: log.waitStart,
		ConnDone:  log.end,
		ProbeDone: func(p ProbeDone) {
			log.debug("probed", p.Name, slog.Uint64("session", p.Session), slog.Duration("took", p.Took), cause(p.Err))
		},
		SlowHandler: func(s SlowHandler) {
			log.warn("OnMessage is slow: the peer is not read", s.Name, slog.Uint64("session", s.Session), slog.Duration("since", s.Since))
		},
		Overdue: log.overdue,
	}
}

// logger logs the events of a Trace.
type logger struct{ l *slog.Logger }

func (l logger) log(level slog.Level, msg, name string, attrs []slog.Attr) {
	if name != "" {
		attrs = append([]slog.Attr{slog.String("name", name)}, attrs...)
	}
	l.l.LogAttrs(context.Background(), level, msg, attrs...)
}

func (l logger) debug(msg, name string, a ...slog.Attr) { l.log(slog.LevelDebug, msg, name, a) }
func (l logger) info(msg, name string, a ...slog.Attr)  { l.log(slog.LevelInfo, msg, name, a) }
func (l logger) warn(msg, name string, a ...slog.Attr)  { l.log(slog.LevelWarn, msg, name, a) }

func (l logger) waitStart(w WaitStart) {
	log := l.info
	if w.Verdict.Class >= backoff.ClassSlow {
		log = l.warn
	}
	var told slog.Attr
	if w.Verdict.RetryAfter > 0 {
		told = slog.Duration("retry_after", w.Verdict.RetryAfter)
	}
	log("waiting to redial", w.Name, slog.Int("try", w.Try), slog.Duration("wait", w.Verdict.RetryAfter+w.Drawn),
		told, slog.String("verdict", w.Verdict.Class.String()), cause(w.Cause))
}

func (l logger) end(e ConnDone) {
	log := l.info
	_, byItself := errors.AsType[*EndError](e.Err) // which is net.ErrClosed too
	if byItself || !errors.Is(e.Err, net.ErrClosed) && !errors.Is(e.Err, context.Canceled) {
		log = l.warn
	}
	log("ended", e.Name, cause(e.Err))
}

func (l logger) overdue(o Overdue) {
	msg := "function should have returned"
	if o.What == "reader" {
		msg = "nobody reads, and the inbox is full"
	}
	l.warn(msg, o.Name, slog.String("what", o.What), slog.Duration("since", o.Since))
}

// cause returns err as an attribute, or an empty one if err is nil. The text has no secrets,
// and the handler quotes it.
func cause(err error) slog.Attr {
	if err == nil {
		return slog.Attr{}
	}
	return slog.String("cause", err.Error())
}
