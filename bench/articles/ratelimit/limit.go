package ratelimit

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
)

// Limit is how many calls an API allows.
type Limit struct {
	Rate   float64       // calls per second; default 100
	Window time.Duration // calls are counted in windows of this length; default 1 s; negative: there is a bucket of tokens instead, which fills at Rate
	Burst  int           // tokens of the bucket; default 1
	Tell   Tell          // default TellNothing
}

// Tell is what a 429 says about the time of the next call.
type Tell uint8

// The kinds of Tell. Retry-After has whole seconds, rounded up.
const (
	TellNothing Tell = iota // no Retry-After
	TellSame                // when there is room again, which is the same for all
	TellBooked              // a time of his own for each, as many at a time as there is room for
)

var tells = []string{"nothing", "same", "booked"}

// Tells returns all that a 429 can say.
func Tells() []Tell { return pick.Kinds[Tell](tells) }

// String returns "nothing", "same" or "booked".
func (t Tell) String() string { return pick.Kind(tells, t) }

const (
	mostRate   = 1e6
	mostWindow = 24 * time.Hour
)

func (l Limit) withDefaults() (Limit, error) {
	l.Rate, l.Window, l.Burst = cmp.Or(l.Rate, 100), cmp.Or(l.Window, time.Second), cmp.Or(l.Burst, 1)
	switch {
	case !(l.Rate > 0 && l.Rate <= mostRate):
		return l, fmt.Errorf("the rate must be above 0 and at most %.0f calls per second, not %v", float64(mostRate), l.Rate)
	case l.Window > mostWindow:
		return l, fmt.Errorf("the window must be at most %v, not %v", mostWindow, l.Window)
	case l.Window > 0 && l.perWindow() < 1:
		return l, fmt.Errorf("a window of %v with %v calls per second allows no call", l.Window, l.Rate)
	case l.Burst < 0:
		return l, fmt.Errorf("the burst must be at least 1, not %d", l.Burst)
	case int(l.Tell) >= len(tells):
		return l, fmt.Errorf("there is no such Tell: %v", l.Tell)
	}
	return l, nil
}

// perWindow is how many calls a window allows.
func (l Limit) perWindow() int64 { return int64(math.Floor(l.Rate*l.Window.Seconds() + 1e-9)) }

// Ideal returns when the last of n calls could succeed at the earliest, if the first come
// at 0.
func (l Limit) Ideal(n int) (time.Duration, error) {
	l, err := l.withDefaults()
	if err != nil || n < 1 {
		return 0, err
	}
	if l.Window > 0 {
		return time.Duration((int64(n)-1)/l.perWindow()) * l.Window, nil
	}
	return time.Duration(float64(max(n-l.Burst, 0)) / l.Rate * float64(time.Second)), nil
}

// API counts calls. Its caller passes the time, which never goes back. It is not safe for
// concurrent use.
type API struct {
	limit  Limit
	window int64         // the current one, from 0 on
	used   int64         // calls that it has allowed
	tokens float64       // of the bucket
	filled time.Duration // when tokens was right
	booked int64         // of the times that were told: the last window
	taken  int64         // times that were told in it
	due    time.Duration // with a bucket: the last time that was told
}

// New returns an API without calls.
func (l Limit) New() (*API, error) {
	l, err := l.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("limit calls: %w", err)
	}
	return &API{limit: l, tokens: float64(l.Burst)}, nil
}

// Call reports whether a call at a time since the beginning succeeds, and if not, what
// Retry-After says; 0: nothing.
func (a *API) Call(now time.Duration) (ok bool, after time.Duration) {
	var free time.Duration // when there is room again
	if a.limit.Window > 0 {
		ok, free = a.count(now)
	} else {
		ok, free = a.take(now)
	}
	if ok || a.limit.Tell == TellNothing {
		return ok, 0
	}
	if a.limit.Tell == TellBooked {
		free = a.book(free)
	}
	return false, max((free - now + time.Second - 1).Truncate(time.Second), time.Second)
}

// count is a call in a window.
func (a *API) count(now time.Duration) (ok bool, free time.Duration) {
	if w := int64(now / a.limit.Window); w != a.window {
		a.window, a.used = w, 0
	}
	if a.used < a.limit.perWindow() {
		a.used++
		return true, 0
	}
	return false, time.Duration(a.window+1) * a.limit.Window
}

// take is a call for a token.
func (a *API) take(now time.Duration) (ok bool, free time.Duration) {
	a.tokens = min(a.tokens+(now-a.filled).Seconds()*a.limit.Rate, float64(a.limit.Burst))
	a.filled = now
	const rounding = 1e-6
	if a.tokens >= 1-rounding {
		a.tokens--
		return true, 0
	}
	return false, now + time.Duration((1-a.tokens)/a.limit.Rate*float64(time.Second))
}

// book returns the first time from free on that has room left.
func (a *API) book(free time.Duration) time.Duration {
	if a.limit.Window < 0 {
		a.due = max(free, a.due+time.Duration(float64(time.Second)/a.limit.Rate))
		return a.due
	}
	if a.booked <= a.window {
		a.booked, a.taken = a.window+1, 0
	}
	if a.taken == a.limit.perWindow() {
		a.booked, a.taken = a.booked+1, 0
	}
	a.taken++
	return time.Duration(a.booked) * a.limit.Window
}
