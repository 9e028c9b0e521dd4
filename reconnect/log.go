package reconnect

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Log returns a Trace that writes one line for each session and each wait:
// sessions ready and lost and ordinary waits at level Info; what somebody has to
// mend (a verdict Slow, or the end for good) and overdue functions at Warn;
// dials, probes and the gate at Debug.
func Log(l *slog.Logger) *Trace {
	log := func(level slog.Level, msg string, attrs ...slog.Attr) {
		l.LogAttrs(context.Background(), level, msg, attrs...)
	}
	return &Trace{
		GateDone: func(host string, took time.Duration, err error) {
			log(slog.LevelDebug, "gate passed", slog.String("host", host), slog.Duration("took", took), cause(err))
		},
		DialDone: func(d DialDone) {
			log(slog.LevelDebug, "dialled", slog.Int("try", d.Try), slog.Duration("took", d.Took), cause(d.Err))
		},
		SessionReady: func(s *Session) {
			log(slog.LevelInfo, "session ready", slog.Uint64("session", s.N), slog.Duration("downtime", s.Downtime))
		},
		SessionDone: func(e SessionEnd) {
			log(slog.LevelInfo, "session ended", slog.Uint64("session", e.N), slog.Duration("uptime", e.Uptime),
				slog.Duration("ready", e.Ready), cause(e.Cause))
		},
		WaitStart: func(w Wait) {
			level := slog.LevelInfo
			if w.Verdict.Class >= backoff.ClassSlow {
				level = slog.LevelWarn
			}
			log(level, "waiting to redial", slog.Int("try", w.Try), slog.Duration("wait", w.Drawn),
				slog.Duration("retry_after", w.Verdict.RetryAfter), slog.String("verdict", w.Verdict.Class.String()), cause(w.Cause))
		},
		End: func(err error) {
			level := slog.LevelWarn
			if errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled) {
				level = slog.LevelInfo
			}
			log(level, "ended", cause(err))
		},
		ProbeDone: func(p ProbeDone) {
			log(slog.LevelDebug, "probed", slog.Uint64("session", p.Session), slog.Duration("took", p.Took), cause(p.Err))
		},
		Overdue: func(what string, since time.Duration) {
			log(slog.LevelWarn, "function was told to end and has not", slog.String("function", what), slog.Duration("since", since))
		},
	}
}

// cause is err as an attribute, none if it is nil. Its text has no secrets
// (promise 13), and is quoted by the handler.
func cause(err error) slog.Attr {
	if err == nil {
		return slog.Attr{}
	}
	return slog.String("cause", err.Error())
}
