package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/drain"
)

func message(text string) reconnect.Message {
	return reconnect.Message{Message: conn.TextMessage(text)}
}

// times returns when a drain in this way closes each of 100 connections, since SIGTERM, in order.
func times(t *testing.T, name string) (at []time.Duration) {
	w, err := findWay(name)
	require.NoError(t, err)
	d, err := w.group(&setup{Drain: Drain{Window: 10 * time.Second, Lead: time.Second}})
	require.NoError(t, err)
	begun := time.Now()
	closed := make(chan time.Duration, 100)
	for range cap(closed) {
		var member *drain.Member
		member = d.Add(func(code int, _ string) error {
			require.Equal(t, 1012, code)
			closed <- time.Since(begun)
			member.Remove()
			return nil
		})
	}
	require.True(t, d.Ready())
	require.NoError(t, d.Drain(t.Context()))
	require.False(t, d.Ready())
	for range cap(closed) {
		at = append(at, <-closed)
	}
	return at
}

func TestEachWayKeepsItsRule(t *testing.T) {
	const second = time.Second
	for name, check := range map[string]func(at []time.Duration){
		"cut": func(at []time.Duration) {
			require.Equal(t, []time.Duration{second, second}, []time.Duration{at[0], at[99]})
		},
		"drain": func(at []time.Duration) {
			require.Less(t, at[9], 4*second)
			require.Greater(t, at[90], 8*second)
			require.LessOrEqual(t, at[99], 11*second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(times(t, name)) })
		})
	}
}
