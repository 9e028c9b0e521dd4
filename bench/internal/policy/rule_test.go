package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/articles/waits"
	"github.com/redial-go/redial/bench/internal/policy"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each parameter that a rule takes, and none of the others, changes what is drawn.
func TestARuleTakesTheParametersThatItNames(t *testing.T) {
	values := map[policy.Param]policy.Params{
		policy.Base: {Base: 7 * time.Second}, policy.Factor: {Factor: 3}, policy.Cap: {Cap: 3 * time.Second},
		policy.Jitter: {Jitter: 0.7}, policy.Spread: {Spread: 9 * time.Second}, policy.Share: {Share: 0.9}, policy.Law: {Law: "none"}, policy.Repeats: {Repeats: 1},
	}
	for _, r := range policy.Rules() {
		usual := drawn(t, r.New(policy.Params{}))
		for param, p := range values {
			require.Equal(t, []policy.Param{param}, p.Given())
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
	for _, r := range policy.Rules() {
		require.False(t, seen[r.Name], r.Name)
		seen[r.Name] = true
		require.NotContains(t, all, drawn(t, r.New(policy.Params{})), r.Name)
		all = append(all, drawn(t, r.New(policy.Params{})))
	}
}
