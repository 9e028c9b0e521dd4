package waits_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/articles/waits"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each parameter that a rule takes, and none of the others, changes what is drawn.
func TestARuleTakesTheParametersThatItNames(t *testing.T) {
	values := map[waits.Param]waits.Params{
		waits.Base: {Base: 7 * time.Second}, waits.Multiplier: {Multiplier: 3}, waits.Cap: {Cap: 3 * time.Second},
		waits.Jitter: {Jitter: 0.7}, waits.Spread: {Spread: 9 * time.Second}, waits.Share: {Share: 0.9},
	}
	for _, r := range waits.Rules() {
		usual := drawn(t, r.New(waits.Params{}))
		for param, p := range values {
			require.Equal(t, []waits.Param{param}, p.Given())
			if slices.Contains(r.Takes, param) {
				require.NotEqual(t, usual, drawn(t, r.New(p)), "%s of %s", param, r.Name)
			} else {
				require.Equal(t, usual, drawn(t, r.New(p)), "%s of %s", param, r.Name)
			}
		}
	}
}

func drawn(t *testing.T, p backoff.Policy) [][]waits.Retry {
	y, err := waits.Draw(t.Context(), waits.Options{Policy: p, Retries: 20, Seeds: 5, Seed: 1, Until: time.Second})
	require.NoError(t, err)
	return y.Clients
}

func TestNoTwoRulesWaitTheSame(t *testing.T) {
	seen := map[string]bool{}
	var all [][][]waits.Retry
	for _, r := range waits.Rules() {
		require.False(t, seen[r.Name], r.Name)
		seen[r.Name] = true
		require.NotContains(t, all, drawn(t, r.New(waits.Params{})), r.Name)
		all = append(all, drawn(t, r.New(waits.Params{})))
	}
}

func TestAParameterThatNoRuleTakesIsNamed(t *testing.T) {
	rules := map[string]waits.Rule{}
	for _, r := range waits.Rules() {
		rules[r.Name] = r
	}
	err := waits.Params{Multiplier: 2}.Check([]waits.Rule{rules["fixed"], rules["tailscale"]})
	require.EqualError(t, err, "-multiplier means nothing here: fixed takes -base; tailscale takes -cap")
	err = waits.Params{Base: 2}.Check([]waits.Rule{rules["recws"]})
	require.EqualError(t, err, "-base means nothing here: recws has no parameters")
	require.NoError(t, waits.Params{Multiplier: 2}.Check([]waits.Rule{rules["fixed"], rules["full"]}))
}

func TestOnlyTheParametersOfARuleAreKept(t *testing.T) {
	all := waits.Params{Base: time.Second, Multiplier: 2, Cap: time.Minute, Jitter: -1, Spread: 3, Share: 0.5}
	require.Equal(t, "base=1s,multiplier=2,cap=1m0s,jitter=0,spread=3ns,share=0.5", all.String())
	for _, r := range waits.Rules() {
		require.ElementsMatch(t, r.Takes, all.Only(r).Given(), r.Name)
	}
}
