package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABoxRefusesWhatWasNotSent(t *testing.T) {
	for name, p := range map[string][]byte{
		"shorter": payload(127), "longer": payload(129), "another beginning": append([]byte{'X'}, payload(128)[1:]...),
		"another end": append(payload(127), 0), "empty": nil,
	} {
		b := newBox(128)
		b.expect(1)
		b.take(p)
		require.ErrorContains(t, b.wait(t.Context()), "message 0 is not what was sent", name)
	}
}

func TestABoxIsFullWhenAllHaveCome(t *testing.T) {
	b := newBox(128)
	b.expect(2)
	b.take(payload(128))
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	require.EqualError(t, b.wait(ended), "wait for 2 messages: enough")
	b.take(payload(128))
	require.NoError(t, b.wait(t.Context()))
	b.take(payload(128))
	require.EqualError(t, b.wait(t.Context()), "more than 2 messages came")
}

func TestEachNumberOfTheFeedIsAMessageOfItsOwn(t *testing.T) {
	for _, n := range []int{0, 1, 9_999} {
		require.Equal(t, n, number(numbered(n)))
	}
	for _, p := range [][]byte{nil, payload(127), append([]byte{'X'}, payload(128)[1:]...)} {
		require.Equal(t, -1, number(p))
	}
}

func TestAnOrderThatNoRowGivesIsAnError(t *testing.T) {
	a := agent{reply: func([]byte, int) error { t.Error("there is an answer"); return nil }}
	for _, p := range [][]byte{nil, {'X'}, {askPour}, pourOrder(1, 1), pourOrder(1<<20, 1), pourOrder(128, 0)} {
		require.Error(t, a.take(p))
	}
}

func TestEvery64thMessageIsAnswered(t *testing.T) {
	answers := 0
	a := agent{reply: func(p []byte, times int) error {
		require.Equal(t, "C1", string(p)+string(rune('0'+times)))
		answers++
		return nil
	}}
	for i := range 3*burst + 1 {
		require.Equal(t, i/burst, answers)
		require.NoError(t, a.take([]byte("CC")))
	}
}
