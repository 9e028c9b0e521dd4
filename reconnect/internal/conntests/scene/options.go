package scene

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// Every is a policy that waits d each time.
type Every time.Duration

func (p Every) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Duration(p)}, true
}

// Doubling is a policy without jitter: it waits 1, 2, 4 ... s.
type Doubling struct{}

func (Doubling) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Second << a.N}, true
}

// Hanging is a policy under which a handshake hangs after 10 s.
type Hanging struct{}

func (Hanging) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	wait := time.Second
	if a.Hung {
		wait = 0
	}
	return backoff.Step{Wait: wait, Connect: 5 * time.Second, Handshake: 10 * time.Second}, true
}

// WithPolicy returns options with this policy.
func WithPolicy(p backoff.Policy) reconnect.Options {
	return reconnect.Options{Run: reconnect.RunOptions{Policy: p}}
}

// StallOptions returns options with a limit on the time without data, and without a wait before
// a redial.
func StallOptions(limit time.Duration) reconnect.Options {
	o := WithPolicy(Every(0))
	o.Stall.Limit = limit
	return o
}

// NewLogins returns a budget, whose options must be valid.
func NewLogins(t testing.TB, o budget.LoginsOptions) *budget.Logins {
	t.Helper()
	l, err := budget.NewLogins(&o)
	require.NoError(t, err)
	return l
}

// Hourly is a budget of n logins in an hour.
func Hourly(t testing.TB, n int) *budget.Logins {
	return NewLogins(t, budget.LoginsOptions{Windows: []budget.Window{{N: n, Per: time.Hour}}})
}

// Hourly is a budget of n logins in an hour plus those that s takes until its test begins.
func (s *Scene) Hourly(n int) *budget.Logins { return Hourly(s.t, n+s.Form.ReadyLogins()) }

// LoggingIn are options that log in by a message, and take the logins from l.
func LoggingIn(l *budget.Logins) reconnect.Options {
	o := WithPolicy(Every(time.Second))
	o.Run.Logins = l
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.Write(Text("login")) }
	return o
}

// Sending returns options for Send that redial after a second, and the log of their receipts.
func Sending(down reconnect.WhenDown) (*reconnect.Options, *ReceiptLog) {
	l, o := new(ReceiptLog), WithPolicy(Every(time.Second))
	o.WhenDown, o.Outbox.OnReceipt = down, l.Add
	return &o, l
}

// Rotating returns options without waits, with this way to rotate.
func Rotating(way reconnect.Overlap) reconnect.Options {
	o := WithPolicy(Every(time.Second))
	o.Rotate.Overlap = way
	return o
}

// Answered is an error with the status code of an answer, as those of a dialer are.
type Answered int

func (a Answered) Error() string { return "answered" }

func (a Answered) StatusCode() int { return int(a) }

// HasStatus returns a function that reports whether an error is one of a dialer with this status.
func HasStatus(code int) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*dialer.Error](err)
		return ok && e.StatusCode == code
	}
}

// Short names for tables.
const (
	Retry, Overload, Slow = backoff.ClassRetry, backoff.ClassOverload, backoff.ClassSlow
	Whole                 = conntest.Fin | conntest.TextFrame // head of a text message in one frame
)
