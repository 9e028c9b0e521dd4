package history

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// stated returns the verdict on an error as the doc comments of [backoff.Classify], [backoff.ClassifyRefusals] and [reconnect.Advice] state
// it, for the errors that a history makes: its Class, and whether it is Lenient. It reports false for any other error.
func (w *world) stated(err error) (v backoff.Verdict, ok bool) {
	v, ok = statedOf(err, w.set.Refusals)
	if d, dialed := errors.AsType[*dialer.Error](err); dialed && strings.Contains(d.Endpoint, "advised-") && v.Class >= backoff.ClassRefresh {
		return backoff.Verdict{Class: backoff.ClassRetry}, ok // the usual address may be right
	}
	return v, ok
}

// statedOf is stated without the advice. refusals says that ClassifyRefusals judges.
func statedOf(err error, refusals bool) (v backoff.Verdict, ok bool) {
	lenient := backoff.Verdict{Class: backoff.ClassSlow, Lenient: true}
	if d, ok := errors.AsType[*dialer.Error](err); ok && d.StatusCode != 0 {
		switch d.StatusCode {
		case 410:
			return backoff.Verdict{Class: backoff.ClassStop}, true
		case 401, 403:
			return backoff.Verdict{Class: backoff.ClassSlow}, true
		case 429, 503, 504:
			return backoff.Verdict{Class: backoff.ClassOverload}, true
		case 408, 425:
			return backoff.Verdict{Class: backoff.ClassRetry}, true
		}
		if d.StatusCode/100 == 5 {
			return backoff.Verdict{Class: backoff.ClassRetry}, true
		}
		return lenient, true
	}
	if c, ok := errors.AsType[interface {
		error
		CloseCode() int
	}](err); ok && c.CloseCode() > 0 {
		switch code := c.CloseCode(); {
		case code == 1013:
			return backoff.Verdict{Class: backoff.ClassOverload}, true
		case slices.Contains([]int{1002, 1003, 1007, 1008, 1009, 1010, 1015}, code):
			return lenient, true
		case refusals && code == 4401:
			return backoff.Verdict{Class: backoff.ClassRefresh}, true
		case refusals && (code == 4403 || code >= 3500 && code <= 3999 || code >= 4500 && code <= 4999):
			return backoff.Verdict{Class: backoff.ClassSlow}, true
		}
		return backoff.Verdict{Class: backoff.ClassRetry}, true
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok {
		if d.IsNotFound && !d.IsTemporary && !d.IsTimeout {
			return lenient, true
		}
		return backoff.Verdict{Class: backoff.ClassRetry}, true
	}
	for _, lost := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF, errLogin, errRedial, reconnect.ErrInboxFull} {
		if errors.Is(err, lost) {
			return backoff.Verdict{Class: backoff.ClassRetry}, true
		}
	}
	if backoff.ReasonOf(err) == backoff.ReasonTimeout || backoff.ReasonOf(err) == backoff.ReasonOpen {
		return backoff.Verdict{Class: backoff.ClassOverload}, true
	}
	return backoff.Verdict{}, false
}

// verdicts is what is known of the verdicts before the next one: a Lenient one may be the second in a row. world.mu guards it.
type verdicts struct {
	last    backoff.Class // as stated, of the last failure; ClassOK: there was none since a stable session
	unknown bool          // last is not known
	beside  bool          // since the last wait or session there were two dials at a time, of which either may have the verdict
}

// dialsBeside notes that a dial begins, or its wait at the gate. The caller holds w.mu.
func (w *world) dialsBeside() {
	n := w.ended["dial start"] - w.ended["dial done"] + w.ended["gate start"] - w.ended["gate done"]
	w.verdicts.beside = w.verdicts.beside || n > 1
}

// rotating reports whether a rotation is under way, in which each of two supervisors has a row of its own. The caller holds w.mu.
func (w *world) rotating() bool { return w.ended["rotate start"] > w.ended["rotate done"] }

// verdictAsStated checks the verdict on a cause. A Lenient one is ClassRetry the first time, and ClassSlow when the verdict before it was
// Slow, too. Not checked is the verdict after two dials beside each other, which may be that on the other one. The caller holds w.mu.
func (w *world) verdictAsStated(e reconnect.WaitStart) {
	if e.Cause == nil {
		return
	}
	want, ok := w.stated(e.Cause)
	if _, login := errors.AsType[*budget.LoginError](e.Cause); login { // it wraps the error before
		ok = false
	}
	before := w.verdicts
	w.verdicts = verdicts{last: want.Class, unknown: !ok || before.beside || w.rotating()}
	if !ok || before.beside || want.Class == backoff.ClassRefresh { // which RefusedIsSlow checks
		return
	}
	got := e.Verdict.Class
	switch {
	case got == backoff.ClassOverload && w.set.OneConnection && w.set.Blocks:
		// The verdict may be that on a handshake that hung, which has failed while the policy was asked.
	case !want.Lenient:
		w.check(VerdictAsStated, got == want.Class, "%v (%+v) after %v", got, e.Verdict, e.Cause)
	case before.unknown || w.rotating():
		w.check(VerdictAsStated, got == backoff.ClassRetry || got == backoff.ClassSlow, "%v (%+v) after %v", got, e.Verdict, e.Cause)
	case before.last == backoff.ClassSlow:
		w.check(VerdictAsStated, got == backoff.ClassSlow, "%v (%+v) after %v, and the verdict before it was slow", got, e.Verdict, e.Cause)
	default:
		w.check(VerdictAsStated, got == backoff.ClassRetry, "%v (%+v) after %v, and the verdict before it was %v", got, e.Verdict, e.Cause, before.last)
	}
}

// statsAsTold checks Stats.Received and Stats.Lost: no fewer messages were received than the reader got, and no more than the server has
// begun to send, and each session that was ready was lost. The caller holds w.mu.
func (w *world) statsAsTold(stats reconnect.Stats) {
	w.check(StatsAreTrue, stats.Received >= uint64(w.readCount), "%d messages were read, and %d were received", w.readCount, stats.Received)
	w.check(StatsAreTrue, stats.Received <= uint64(w.said), "%d messages were received, and the server has sent %d", stats.Received, w.said)
	least, most := w.seamsDue(0, w.started)
	w.check(StatsAreTrue, w.exited || uint64(least) <= stats.Lost && stats.Lost <= uint64(most), "%d sessions were lost, and %d to %d were ready or had delivered something", stats.Lost, least, most)
}

// rotatesByAge checks a rotation that nobody has asked for. A budget of logins, a hook, or the rotation before may hold it up. The caller
// holds w.mu.
func (w *world) rotatesByAge(e reconnect.RotateStart) {
	if w.set.RotateAfter == 0 || w.meddled[e.Session] || !errors.Is(e.Cause, reconnect.ErrRotated) {
		return
	}
	age := w.now() - w.of(e.Session).readyAt
	onTime := age <= w.set.RotateAfter || w.set.Logins > 0 || w.acted || w.rotated
	w.check(RotatesAtAnyAge, age >= w.set.RotateAfter/10*9 && onTime, "session %d is replaced at an age of %v of %v", e.Session, age, w.set.RotateAfter)
	if w.set.Logins > 0 || w.now() == w.rotateDone { // it has waited
		return
	}
	if w.set.Allowed {
		allowed := w.allowedAt == w.now() || w.acted && w.allowedAt >= w.of(e.Session).readyAt
		w.check(RotatesWhenAllowed, allowed || age >= w.set.RotateAfter/100*99,
			"session %d at an age of %v of %v", e.Session, age, w.set.RotateAfter)
		return
	}
	w.check(RotatesAtAnyAge, !w.ages[age], "session %d is replaced at an age of %v: %v %v", e.Session, age, w.ages, *w.of(e.Session))
	w.ages[age] = true
}
