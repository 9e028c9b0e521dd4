package history

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// trueCause compares the cause of an end with the fault of the connection, if it had one only. The caller holds w.mu.
func (w *world) trueCause(s *session, e reconnect.SessionDone) {
	rec := w.pipes[s.pipe]
	if s.pipe == nil || rec == nil || len(rec.faults) != 1 || w.meddled[s.number] || w.closing > 0 || e.Planned || w.exited {
		return
	}
	if w.storeFailed(s, e.Cause, rec.faults[0].at) {
		return
	}
	f, since := rec.faults[0].kind, w.now()-rec.faults[0].at
	switch f {
	case "reset", "flap":
		w.check(CauseIsTrue, since > 0 || errors.Is(e.Cause, syscall.ECONNRESET), "%s: %v", f, e.Cause)
	case "fin", "cut now", "kill":
		w.check(CauseIsTrue, since > 0 || errors.Is(e.Cause, io.EOF) || errors.Is(e.Cause, io.ErrUnexpectedEOF) || errors.Is(e.Cause, syscall.EPIPE), "%s: %v", f, e.Cause)
	case "stall", "sleep", "address": // nothing comes any more, and so nothing but a limit of ours can end it; when the stall is over, the server can
		if !s.ready {
			return // OnSession has an error of its own
		}
		var network bool
		switch e.Reason {
		case backoff.ReasonHangup, backoff.ReasonRefused, backoff.ReasonNetwork, backoff.ReasonProtocol, backoff.ReasonTLS, backoff.ReasonOther,
			backoff.ReasonCloseNormal, backoff.ReasonCloseRestart, backoff.ReasonCloseOverload, backoff.ReasonCloseOther:
			network = true
		}
		w.check(CauseIsTrue, !network || rec.thawed, "%s: %v (%v)", f, e.Cause, e.Reason)
		w.check(CauseIsTrue, e.Reason != backoff.ReasonLocal || f == "address", "%s: %v", f, e.Cause)
		w.check(CauseIsTrue, e.Reason == backoff.ReasonLocal || !w.asked[s.pipe], "%s: %v after Check", f, e.Cause)
	default:
		if s.ready && strings.HasPrefix(f, "wrong ") {
			w.wrongCause(s, rec, e)
		}
		closed, ok := errors.AsType[*conn.CloseError](e.Cause)
		if strings.HasPrefix(f, "close ") && w.set.Framing == 0 && s.ready && since <= w.set.Lag+time.Millisecond {
			w.check(CauseIsTrue, ok && "close "+itoa(closed.Code) == f || w.fullFirst(e, since), "%s: %v", f, e.Cause)
		}
	}
}

// fullFirst reports whether a full inbox may have ended the session before the close frame came, which the server sent
// since ago. InboxDisconnect ends a session at the message for which there is no room. Messages that the server sent before
// the close frame come before that frame, and so until the lag of the connection is over.
func (w *world) fullFirst(e reconnect.SessionDone, since time.Duration) bool {
	disconnects := w.set.Reader != readPush && reconnect.InboxOverflow(w.set.InboxOverflow) == reconnect.InboxDisconnect
	return disconnects && since <= w.set.Lag+time.Microsecond && errors.Is(e.Cause, reconnect.ErrInboxFull)
}
