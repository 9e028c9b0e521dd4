package history

import (
	"errors"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// drawLogins draws a budget of logins, from a stream of its own: the rest of a plan does not depend on it.
func (p *Plan) drawLogins() {
	if r := p.stream(9); r.IntN(6) == 0 {
		p.Settings.Logins, p.Settings.LoginsPer = 1+r.IntN(5), 5*time.Second+upTo(r, 40*time.Second)
	}
}

// budget returns the budget of logins, nil if there is none.
func (w *world) budget() *budget.Logins {
	if w.set.Logins == 0 {
		return nil
	}
	l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: w.set.Logins, Per: w.set.LoginsPer}}})
	if err != nil {
		panic(err)
	}
	w.logins = l
	return l
}

// loginMade is a login, which was made between two times, because its write may wait.
type loginMade struct {
	from, to time.Duration
	sure     bool // it was made; else perhaps
}

// logsIn notes that the write of a login begins.
func (w *world) logsIn() *loginMade {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &loginMade{from: w.now()}
	w.made = append(w.made, l)
	return l
}

// loggedIn notes that the write of a login has ended.
func (w *world) loggedIn(l *loginMade, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, short := errors.AsType[*budget.LoginError](err); short {
		w.made = slices.DeleteFunc(w.made, func(o *loginMade) bool { return o == l })
		return
	}
	l.to, l.sure = w.now(), err == nil
	if least, _ := w.recentLogins(); w.set.Logins > 0 {
		w.check(LoginsBounded, least <= w.set.Logins, "%d logins within %v, and %d are allowed", least, w.set.LoginsPer, w.set.Logins)
	}
}

// recentLogins returns how many logins the window has, at the least and at the most. The caller holds w.mu.
func (w *world) recentLogins() (least, most int) {
	since := w.now() - w.set.LoginsPer
	for _, l := range w.made {
		if l.sure && l.from > since {
			least++
		}
		if l.to == 0 && !l.sure || l.to > since {
			most++
		}
	}
	return least, most
}

// loginLeft checks that a dial begins only if a login is left. During a rotation the other supervisor may take the last one
// meanwhile. The caller holds w.mu.
func (w *world) loginLeft() {
	if w.set.Logins > 0 && !w.rotated {
		least, _ := w.recentLogins()
		w.check(LoginLeftAtDial, least < w.set.Logins, "%d logins of %d were made within %v", least, w.set.Logins, w.set.LoginsPer)
	}
}

// waitsForLogin reports whether a wait is for a login. Then it checks that the wait ends when a login is left, and not before, and
// that the Status shows the wait.
func (w *world) waitsForLogin(e reconnect.WaitStart) bool {
	if backoff.ReasonOf(e.Cause) != backoff.ReasonLogins {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c, until := w.conn, w.now()+e.Verdict.RetryAfter+e.Drawn
	if !w.rotated {
		least, most := w.recentLogins()
		w.check(WaitForLogin, most >= w.set.Logins, "%d logins of %d were made within %v", most, w.set.Logins, w.set.LoginsPer)
		if least == most && least == w.set.Logins {
			l := w.made[len(w.made)-least] // when the oldest is over, one is left
			w.check(WaitForLogin, until >= l.from+w.set.LoginsPer && until <= l.to+w.set.LoginsPer, "until %v, and the login of %v counts for %v", until, l.to, w.set.LoginsPer)
		}
	}
	if c == nil || w.rotated || w.closing > 0 {
		return true
	}
	w.mu.Unlock() // for Status
	s := c.Status()
	w.mu.Lock()
	w.check(WaitForLogin, w.closing > 0 || s.State == reconnect.StateWaiting && backoff.ReasonOf(s.Err) == backoff.ReasonLogins && s.Next.Sub(w.start) == until,
		"until %v, and the Status is %+v", until, s)
	return true
}
