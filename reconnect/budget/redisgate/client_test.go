package redisgate_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

// garbage is a server that answers each request with the same value.
type garbage struct{ value any }

func (g garbage) EvalSha(context.Context, string, []string, ...any) *redis.Cmd {
	return redis.NewCmdResult(g.value, nil)
}

func (g garbage) Eval(context.Context, string, []string, ...any) *redis.Cmd {
	panic("the server knows all scripts")
}

// What answers is no Redis, or a Redis with another script.
func TestGarbageForEverCountsAsAway(t *testing.T) {
	for _, value := range []any{
		nil, int64(1), true, "", "OK", "1", "1 2 3 4", "1 2 3 four \"\"",
		"99999999999999999999 0 0 0 \"\"", "-1 0 0 0 \"\"",
		"1000 0 0 0 \"\"", []any{}, []any{int64(1), int64(0), int64(0), int64(0), ""}, map[any]any{"a": "b"},
	} {
		t.Run(fmt.Sprint(value), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 0, nil, hundred())
				l := f.add(garbage{value}, hundred())
				start := time.Now()
				for range 500 {
					require.NoError(t, l.Wait(t.Context()))
				}
				require.EqualValues(t, 500, l.Status().Shared)
				require.LessOrEqual(t, f.most(time.Second), 25)
				require.ErrorContains(t, l.Status().Err, "redisgate: the script ")
				require.LessOrEqual(t, l.Status().Questions, uint64(5*time.Since(start)/time.Second))

				shared, err := redisgate.NewLogins(garbage{value}, &redisgate.LoginsOptions{Key: "account"})
				require.NoError(t, err)
				defer shared.Close()
				taken, err := shared.Take(t.Context(), []budget.Window{{N: 1, Per: time.Hour}})
				require.False(t, taken)
				require.ErrorContains(t, err, "redisgate: the script returned ")
				_, short := shared.Recent()
				const want = "redisgate: the logins cannot be counted: redisgate: the script returned "
				require.ErrorContains(t, short, want)
			})
		})
	}
}

// The list of logins is cut off, or is no list.
func TestGarbageInTheListOfLoginsIsNamed(t *testing.T) {
	for _, list := range []string{"1600000000000000", "x y", "\n"} {
		synctest.Test(t, func(t *testing.T) {
			value := "1 1600000000000000 0 1 1000 \"epoch\"\n1600000000000000 id\n" + list
			shared, err := redisgate.NewLogins(garbage{value}, &redisgate.LoginsOptions{Key: "account"})
			require.NoError(t, err)
			defer shared.Close()
			taken, err := shared.Take(t.Context(), nil)
			require.False(t, taken)
			require.ErrorContains(t, err, "redisgate: the script returned a login ")
		})
	}
}
