package history

import (
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// stated returns the class of an error as the doc comments of [backoff.Classify] and of package reconnect state it, for the errors that
// a history makes. It reports false for any other error.
func stated(err error) (backoff.Class, bool) {
	if d, ok := errors.AsType[*dialer.Error](err); ok && d.StatusCode != 0 {
		switch d.StatusCode {
		case 410:
			return backoff.ClassStop, true
		case 429, 503, 504:
			return backoff.ClassOverload, true
		case 408, 425:
			return backoff.ClassRetry, true
		}
		if d.StatusCode/100 == 5 {
			return backoff.ClassRetry, true
		}
		return backoff.ClassSlow, true
	}
	if c, ok := errors.AsType[*conn.CloseError](err); ok {
		switch c.Code {
		case 1013:
			return backoff.ClassOverload, true
		case 1000, 1001, 1012, 4000:
			return backoff.ClassRetry, true
		}
		return 0, false
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok {
		if d.IsNotFound && !d.IsTemporary && !d.IsTimeout {
			return backoff.ClassSlow, true
		}
		return backoff.ClassRetry, true
	}
	if _, broken := errors.AsType[*conn.ProtocolError](err); broken {
		return backoff.ClassSlow, true
	}
	for _, lost := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, lost) {
			return backoff.ClassRetry, true
		}
	}
	if backoff.ReasonOf(err) == backoff.ReasonTimeout || backoff.ReasonOf(err) == backoff.ReasonOpen {
		return backoff.ClassOverload, true
	}
	return 0, false
}

// verdictAsStated checks the verdict on a cause. A lenient one is ClassRetry the first time. Not checked are the verdict on one of two
// dials beside each other, which may be that on the other one, and that on a dial at an advised address. The caller holds w.mu.
func (w *world) verdictAsStated(e reconnect.WaitStart) {
	if w.set.Refusals || w.rotated || e.Cause == nil || w.ended["dial hung"]+w.pushes > 0 || strings.Contains(e.Cause.Error(), "advised-") {
		return
	}
	want, ok := stated(e.Cause)
	if !ok {
		return
	}
	got := e.Verdict.Class
	w.check(VerdictAsStated, got == want || want == backoff.ClassSlow && e.Verdict.Lenient && got == backoff.ClassRetry, "%v (%+v) after %v", got, e.Verdict, e.Cause)
}

// statsAsTold checks Stats.Received and Stats.Lost: no fewer messages were received than the reader got, and each session that was ready
// was lost. The caller holds w.mu.
func (w *world) statsAsTold(stats reconnect.Stats) {
	w.check(StatsAreTrue, stats.Received >= uint64(w.readCount), "%d messages were read, and %d were received", w.readCount, stats.Received)
	least, most := w.seamsDue(0, w.started)
	w.check(StatsAreTrue, uint64(least) <= stats.Lost && stats.Lost <= uint64(most), "%d sessions were lost, and %d to %d were ready or had delivered something", stats.Lost, least, most)
}

// rotatesByAge checks a rotation that nobody has asked for. A budget of logins may decide when it begins. The caller holds w.mu.
func (w *world) rotatesByAge(e reconnect.RotateStart) {
	if w.set.RotateAfter == 0 || w.set.Logins > 0 || w.meddled[e.Session] || !errors.Is(e.Cause, reconnect.ErrRotated) {
		return
	}
	age := w.now() - w.of(e.Session).readyAt
	if w.now() == w.rotateDone { // it has waited for the end of the rotation before
		return
	}
	if w.set.Allowed {
		w.check(RotatesWhenAllowed, w.allowedAt == w.now() || age >= w.set.RotateAfter/100*99, "session %d at an age of %v of %v", e.Session, age, w.set.RotateAfter)
		return
	}
	w.check(RotatesAtAnyAge, !w.ages[age], "session %d is replaced at an age of %v: %v %v", e.Session, age, w.ages, *w.of(e.Session))
	w.ages[age] = true
}
