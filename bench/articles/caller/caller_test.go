package caller

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

func TestWhatMakesNoSenseIsNamed(t *testing.T) {
	for want, c := range map[string]Caller{
		"want 0 to 1000 retries, not -1":                                                                  {Retries: -1},
		"a cap of 1s means nothing without a base":                                                        {Retries: 1, Cap: time.Second},
		`jitter "full" means nothing without a base`:                                                      {Retries: 1, Jitter: "full"},
		"want a cap of at least the base, 2s, not 1s":                                                     {Retries: 1, Base: 2 * time.Second, Cap: time.Second},
		`there is no jitter "ful" (is it "full"?): there are none, full, equal`:                           {Retries: 1, Base: time.Second, Jitter: "ful"},
		`budget: want a whole percentage from 1% to 100%, or one of grpc, aws, aws-2026, envoy, not "0%"`: {Budget: "0%"},
		`breaker: want a whole percentage from 1% to 100%, or one of default, not "10"`:                   {Breaker: "10"},
		`retry_breaker: want a whole percentage from 1% to 100%, not "default"`:                           {RetryBreaker: "default"},
	} {
		require.EqualError(t, c.Check(), want)
	}
	for _, c := range []Caller{{}, {Jitter: "none"}, {Retries: 3, Base: time.Second, Jitter: "equal", Budget: "aws", Breaker: "default", RetryBreaker: "5%"}} {
		require.NoError(t, c.Check())
	}
}

func TestACallerWaitsAsItsFiguresSay(t *testing.T) {
	c := Caller{Retries: 4, Base: 100 * ms, Cap: 300 * ms}
	p, err := c.Policy()
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for n, want := range []time.Duration{100 * ms, 200 * ms, 300 * ms, 300 * ms} {
		step, ok := p.Next(backoff.History{N: n}, r)
		require.True(t, ok)
		require.Equal(t, want, step.Wait)
	}
	_, ok := p.Next(backoff.History{N: 4}, r)
	require.False(t, ok)
}

// A full bucket has 30 retries, and then as many more as its share of the first tries that succeed.
func TestABudgetPaysForItsShare(t *testing.T) {
	c := Caller{Retries: 1, Budget: "20%"}
	b, err := c.NewBudget(time.Now)
	require.NoError(t, err)
	failed := backoff.Verdict{Class: backoff.ClassRetry}
	retries := func() (n int) {
		for {
			if _, ok := b.Admit(failed); !ok {
				return n
			}
			n++
		}
	}
	require.Equal(t, 30, retries())
	for range 50 {
		done, _ := b.Admit(backoff.Verdict{})
		done(backoff.Verdict{})
	}
	require.Equal(t, 10, retries())
	none, err := (&Caller{Budget: "none"}).NewBudget(time.Now)
	require.NoError(t, err)
	require.Nil(t, none)
}

// Three retries may be under way, and from 15 tries on a fifth of them. A retry that has ended, or that was
// never begun, makes room for another.
func TestEnvoysBudgetIsAFifthOfWhatIsUnderWay(t *testing.T) {
	b, err := (&Caller{Retries: 1, Budget: "envoy"}).NewBudget(time.Now)
	require.NoError(t, err)
	failed, ends := backoff.Verdict{Class: backoff.ClassRetry}, []func(backoff.Verdict){}
	first := func(n int) {
		for range n {
			done, ok := b.Admit(backoff.Verdict{})
			require.True(t, ok)
			ends = append(ends, done)
		}
	}
	retries := func() (dones []func(backoff.Verdict)) {
		for {
			done, ok := b.Admit(failed)
			if !ok {
				return dones
			}
			dones = append(dones, done)
		}
	}
	three := retries()
	require.Len(t, three, 3)
	first(5)
	require.Empty(t, retries(), "8 under way, 3 of them retries")
	three[0](failed)
	three[1](backoff.Verdict{Class: backoff.ClassStop, Skipped: true})
	require.Len(t, retries(), 2)
	first(80)
	require.Len(t, retries(), 18, "21 of 106")
	for _, end := range ends {
		end(backoff.Verdict{})
	}
	require.Empty(t, retries(), "21 retries and nothing else")
}
