package reconnect_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
)

// The tests of RunOptions.Logins: Conns, and Runs, that are given one budget.

func newLogins(t testing.TB, o budget.LoginsOptions) *budget.Logins {
	t.Helper()
	l, err := budget.NewLogins(&o)
	require.NoError(t, err)
	return l
}

// hourly is a budget of so many logins in an hour.
func hourly(t testing.TB, n int) *budget.Logins {
	return newLogins(t, budget.LoginsOptions{Windows: []budget.Window{{N: n, Per: time.Hour}}})
}

// hourly is a budget of n logins in an hour, and those that s takes until its test begins.
func (s *scene) hourly(n int) *budget.Logins { return hourly(s.t, n+s.form.readyLogins()) }

// loggingIn are options that log in by a message, and take the logins from l.
func loggingIn(l *budget.Logins) reconnect.Options {
	o := withPolicy(every(time.Second))
	o.Run.Logins = l
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.Write(text("login")) }
	return o
}
