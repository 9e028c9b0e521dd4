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
	} {
		g, err := drain.New(&o)
		require.EqualError(t, err, want)
		require.Nil(t, g)
	}
}

func TestTheOptionsAreCopied(t *testing.T) {
	o := &drain.Options{Lead: time.Second, Advice: drain.Advice{Wait: 5 * time.Second}}
	withGroup(t, *o, func(t *testing.T, s *scene) {
		g, err := drain.New(o)
		require.NoError(t, err)
		*o = drain.Options{}
		g.Add(s.closer(1, 0))
		require.NoError(t, g.Drain(t.Context()))
		require.Equal(t, 1012, s.closes()[0].code)
		require.Equal(t, "redial/1 wait=5s", s.closes()[0].reason)
		require.GreaterOrEqual(t, s.closes()[0].at, time.Second)
	})
}

func TestNoOptionsAreTheDefaults(t *testing.T) {
	g, err := drain.New(nil)
	require.NoError(t, err)
	require.True(t, g.Ready())
	require.Equal(t, drain.Stats{}, g.Stats())
}
