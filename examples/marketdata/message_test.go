//go:build !js

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/subscription"
)

func received(text string) reconnect.Message {
	return reconnect.Message{Message: conn.TextMessage(text)}
}

func TestOnlyAMessageWithAnIDIsAnAnswer(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"update","book":"GO-USD","seq":7}`: false,
		`{"type":"pong"}`:          false,
		`{"id":""}`:                false,
		`{"id":"7"`:                false,
		`{"type":"done","id":"7"}`: true,
	} {
		a, ok := answer(received(text))
		require.Equal(t, want, ok, text)
		require.NoError(t, a.Err)
	}
	a, ok := answer(received(`{"id":"7","error":"unknown book"}`))
	require.True(t, ok)
	require.Equal(t, "7", a.ID)
	require.EqualError(t, a.Err, "unknown book")
}

func TestARequestNamesItsKeys(t *testing.T) {
	m, err := encode(&subscription.Request[string]{Op: subscription.Unsubscribe, ID: "7", Keys: []string{"a", "b"}})
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"7","op":"unsubscribe","books":["a","b"]}`, string(m.Data))
}

func TestWhatBelongsToABookIsAnItem(t *testing.T) {
	it, ok := parse(received(`{"type":"snapshot","book":"GO-USD","seq":7,"bids":{"9990":5}}`))
	require.True(t, ok)
	require.True(t, it.Snapshot)
	require.Equal(t, "GO-USD", it.Key)
	require.EqualValues(t, 7, it.Last)
	require.Equal(t, levels{9990: 5}, it.Value.Bids)
	for _, text := range []string{`{"type":"pong"}`, `nonsense`, ``} {
		_, ok = parse(received(text))
		require.False(t, ok, text)
	}
}

func TestATokenServesOnce(t *testing.T) {
	v := &venue{used: map[string]bool{}}
	first, second := "Bearer "+token(secret), "Bearer "+token(secret)
	require.True(t, v.knows(first))
	require.True(t, v.knows(second))
	require.False(t, v.knows(first))
	for _, bad := range []string{"", "Bearer ", "Bearer x.y", "Bearer " + token("another key"), strings.ToLower(second)} {
		require.False(t, v.knows(bad), bad)
	}
}

func FuzzMessagesOfAVenue(f *testing.F) {
	f.Add(`{"type":"update","book":"GO-USD","seq":7,"bids":{"9990":0}}`)
	f.Add(`{"id":"7","error":"unknown book"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if it, ok := parse(received(text)); ok && it.Key == "" {
			t.Error("an item without a key")
		}
		if a, ok := answer(received(text)); ok && a.ID == "" {
			t.Error("an answer without an id")
		}
	})
}
