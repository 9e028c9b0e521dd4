package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

func TestAnOptionThatIsWrongIsNamed(t *testing.T) {
	for want, o := range map[string]drain.Options{
		"drain: Options.MaxAge: -1s is negative":                       {MaxAge: -time.Second},
		"drain: Options.Warn: 1m1s is longer than the Window, 1m0s":    {Warn: 61 * time.Second},
		"drain: Options.Warn: 1s is longer than the Window, 0s":        {Warn: time.Second, Window: -1},
		"drain: Options.Warn: 31s is longer than half of MaxAge, 1m0s": {Warn: 31 * time.Second, MaxAge: time.Minute},
		"drain: Options.Closers: -1 is negative":                       {Closers: -1},
		"drain: Options.CloseTimeout: -1ns is negative":                {CloseTimeout: -1},
		"drain: Options.Code: 999 is not within 1000 to 4999":          {Code: 999},
		"drain: Options.Code: no close frame may have this code":       {Code: 1006},
	} {
		g, err := drain.New(&o)
		require.EqualError(t, err, want)
		require.Nil(t, g)
	}
	for _, code := range []int{1000, 1001, 1003, 1007, 1012, 1014, 3000, 4999} {
		_, err := drain.New(&drain.Options{Code: code})
		require.NoError(t, err)
	}
}

func TestTheOptionsAreCopied(t *testing.T) {
	o := &drain.Options{Lead: time.Second, Code: 1001, Advice: drain.Advice{Wait: 5 * time.Second}}
	withGroup(t, *o, func(t *testing.T, s *scene) {
		g, err := drain.New(o)
		require.NoError(t, err)
		*o = drain.Options{Code: 4000}
		g.Add(s.closer(1, 0))
		require.NoError(t, g.Drain(t.Context()))
		require.Equal(t, 1001, s.closes()[0].code)
		require.Equal(t, "redial/1 wait=5s", s.closes()[0].reason)
		require.GreaterOrEqual(t, s.closes()[0].at, time.Second)
	})
}

func TestNoOptionsAreTheDefaults(t *testing.T) {
	g, err := drain.New(nil)
	require.NoError(t, err)
	require.True(t, g.Ready())
	require.Equal(t, drain.Stats{}, g.Stats())
	require.Equal(t, "drain age hurry cause 9", drain.CauseDrain.String()+" "+drain.CauseAge.String()+" "+drain.CauseHurry.String()+" "+drain.Cause(9).String())
}
