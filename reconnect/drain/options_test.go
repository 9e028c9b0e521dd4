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

func TestTheLongestWarnIsTaken(t *testing.T) {
	for _, o := range []drain.Options{
		{Warn: time.Minute},
		{Warn: 30 * time.Second, MaxAge: time.Minute},
	} {
		_, err := drain.New(&o)
		require.NoError(t, err)
	}
}

func TestTheDefaultOfWarnIsAQuarter(t *testing.T) {
	for name, test := range map[string]struct {
		options drain.Options
		want    time.Duration
	}{
		"the window is shorter": {drain.Options{Window: 40 * time.Second, MaxAge: time.Minute}, 10 * time.Second},
		"the age is shorter":    {drain.Options{MaxAge: 40 * time.Second}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			withGroup(t, test.options, func(t *testing.T, s *scene) {
				s.AddNotice(s.closer(1, 0), s.noticer(1, 0))
				time.Sleep(test.options.MaxAge * 2)
				n := s.notices()[0]
				require.Equal(t, test.want, n.by-n.at)
			})
		})
	}
}

func TestTheDefaultOfClosersIs256(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Window: -1}, func(t *testing.T, s *scene) {
		for i := range 300 {
			s.Add(s.closer(i, time.Second/2))
		}
		end := s.begin(t.Context())
		require.Len(t, s.closes(), 256)
		require.NoError(t, end())
		require.Len(t, s.closes(), 300)
	})
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
