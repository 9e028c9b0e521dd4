package subscription

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Errors that differ in the key alone are one error; a part of a word is no key.
func TestReasonIsErrorWithoutKey(t *testing.T) {
	reasonOf := func(op Op, k, text string) string { return reason(op, k, errors.New(text)) }
	first := reasonOf(OpSubscribe, "A", "no such key: A, or A is late")
	require.Equal(t, first, reasonOf(OpSubscribe, "BTC-USD", "no such key: BTC-USD, or BTC-USD is late"))
	require.NotEqual(t, first, reasonOf(OpUnsubscribe, "A", "no such key: A, or A is late"))
	require.NotEqual(t, first, reasonOf(OpSubscribe, "A", "no such key: A, or B is late"))
	require.Equal(t, reasonOf(OpSubscribe, "a", "not entitled"), reasonOf(OpSubscribe, "b", "not entitled"))
	require.Equal(t, reasonOf(OpSubscribe, "é", "éé: é"), reasonOf(OpSubscribe, "x", "éé: x"))
	require.Equal(t, reasonOf(OpSubscribe, "", "no key"), reasonOf(OpSubscribe, "x", "no key"))
}

// The venue wants one key of the group to wait when it agrees to another one.
func TestAgreementDoesNotEndRequestedWait(t *testing.T) {
	now := time.Now()
	s := rest[int]{batch: 50, groups: map[string]*group[int]{}}
	first, second := &entry[int]{key: 1}, &entry[int]{key: 2}
	s.lay(first, s.find("error", now), time.Second, 0, false, now)
	require.Equal(t, now.Add(time.Second), s.due())
	now = now.Add(time.Second)
	list, size := s.probe(now)
	require.Equal(t, []*entry[int]{first}, list)
	require.Equal(t, 1, size)
	first.resting, first.at[0].op = nil, OpSubscribe // as Set.rouse does
	s.lay(second, s.find("error", now), time.Second, time.Minute, false, now)
	require.Zero(t, s.due(), "one probe at a time")
	first.at[0].op = 0
	s.agreed(first, now)
	require.Equal(t, now.Add(time.Minute), s.due())
}
