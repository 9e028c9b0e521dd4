package budget_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
)

// The defaults: the breaker opens when half of 20 tries within 10 s have failed. After 5 s it lets 3 first tries
// through at a time.
func TestABreakerWithoutOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := budget.NewBreaker(nil)
		require.NoError(t, err)
		for range 10 {
			require.True(t, try(b, first, success))
		}
		for range 9 {
			require.True(t, try(b, first, refused))
		}
		time.Sleep(9 * time.Second)
		require.Equal(t, budget.BreakerClosed, b.State(), "19 tries")
		require.True(t, try(b, first, refused))
		require.Equal(t, budget.BreakerOpen, b.State())
		time.Sleep(5*time.Second - 1)
		require.Equal(t, budget.BreakerOpen, b.State())
		time.Sleep(time.Nanosecond)
		require.Equal(t, budget.BreakerHalfOpen, b.State())
		for range 3 {
			done, ok := b.Admit(first)
			require.True(t, ok)
			defer done(success)
		}
		require.False(t, try(b, first, success), "three are under way")
	})
}

func TestTriesThatAreOlderThanTheWindowDoNotCount(t *testing.T) {
	b, c := newBreaker(t, budget.BreakerOptions{MinSamples: 2})
	try(b, first, refused)
	c.after(10 * time.Second)
	try(b, first, refused)
	require.Equal(t, budget.BreakerClosed, b.State())
	c.after(9 * time.Second)
	try(b, first, refused)
	require.Equal(t, budget.BreakerOpen, b.State())
}

// The share of trials that have failed is exactly Share, which is too many.
func TestTrialsThatFailLikeShareOpenTheBreakerAgain(t *testing.T) {
	b, c := tripped(t, budget.BreakerOptions{HalfOpen: 2, Trials: 2, Share: 0.5})
	c.after(5 * time.Second)
	try(b, first, success)
	try(b, first, refused)
	require.Equal(t, budget.BreakerOpen, b.State())
}

// gRFC A6: a retry is made if there are more tokens than half of maxTokens, even if only by the smallest part.
func TestGRPCsThresholdIsHalfOfItsTokens(t *testing.T) {
	b := newBudget(t, budget.GRPC(10, 0.001))
	for range 5 {
		try(b, first, refused)
	}
	require.False(t, try(b, refused, success))
	try(b, first, success)
	require.True(t, try(b, refused, success))
}

// A try that has left the window does not count any more, and neither does its failure.
func TestTriesLeaveTheWindowOneAfterTheOther(t *testing.T) {
	b, c := newBreaker(t, budget.BreakerOptions{MinSamples: 3})
	for range 4 {
		try(b, first, refused)
		require.Equal(t, budget.BreakerClosed, b.State(), "two are in the window at most")
		c.after(5 * time.Second)
	}
	try(b, first, refused)
	c.after(time.Second)
	try(b, first, refused)
	require.Equal(t, budget.BreakerOpen, b.State())
}

func TestALoginErrorIsOverAtNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := &budget.LoginError{Next: time.Now().Add(time.Second)}
		wait, ahead := err.RetryAfter()
		require.Equal(t, time.Second, wait)
		require.True(t, ahead)
		time.Sleep(time.Second)
		_, ahead = err.RetryAfter()
		require.False(t, ahead)
	})
}

// A directory that stands where the new file is to be written is an error, and does not become the file.
func TestALoginFileThatCannotBeWrittenIsAnError(t *testing.T) {
	f := budget.LoginFile(filepath.Join(t.TempDir(), "logins"))
	require.NoError(t, os.Mkdir(string(f)+".new", 0o700))
	require.Error(t, f.Save([]time.Time{time.Unix(1, 0)}))
	require.NoFileExists(t, string(f))
	require.NoDirExists(t, string(f))
	require.Error(t, budget.LoginFile(filepath.Join(t.TempDir(), "no", "logins")).Save(nil))
}
