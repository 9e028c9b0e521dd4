//go:build !js

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/replay"
	"github.com/redial-go/redial/reconnect/subscription"
)

// reader returns a client without a connection that wants GO-USD.
func reader(t *testing.T) *client {
	set, err := subscription.New(&subscription.Options[string]{Encode: encode, Answer: answer})
	require.NoError(t, err)
	set.Add("GO-USD")
	bridge, err := replay.NewBridge(&replay.BridgeOptions[string, message]{Parse: parse})
	require.NoError(t, err)
	return &client{set: set, bridge: bridge, books: map[string]*book{}}
}

// happens has the client apply an event of the venue's connection 7.
func (c *client) happens(kind replay.Kind, m message) {
	m.Book, m.Conn = "GO-USD", 7
	c.change(&event{Kind: kind, Session: 1, Item: replay.Item[string, message]{Key: m.Book, Last: m.Seq, Value: m}})
}

var snapshot = message{Seq: 40, Bids: levels{9990: 5, 9980: 3}, Asks: levels{10010: 2}}

func TestABookIsASnapshotAndTheUpdatesSince(t *testing.T) {
	c := reader(t)
	c.happens(replay.Snapshot, snapshot)
	c.happens(replay.Live, message{Seq: 41, Bids: levels{9990: 8}})
	c.happens(replay.Live, message{Seq: 42, Bids: levels{9980: 0}})
	c.happens(replay.Live, message{Seq: 43, Asks: levels{10020: 4}})
	v := c.view("GO-USD")
	require.Equal(t, view{true, 1, 43, levels{9990: 8}, levels{10010: 2, 10020: 4}}, v)
	require.Equal(t, "1+2 levels, 99.90/100.10", v.String())
}

func TestABookIsValidFromASnapshotUntilItIsStaleAndAgainWhenItIsHealed(t *testing.T) {
	c := reader(t)
	require.False(t, c.view("GO-USD").valid, "there is none")
	c.happens(replay.Stale, message{})
	require.False(t, c.view("GO-USD").valid)
	c.happens(replay.Snapshot, snapshot)
	require.False(t, c.view("GO-USD").valid, "it may be too old")
	c.happens(replay.Healed, message{})
	require.True(t, c.view("GO-USD").valid)
	c.happens(replay.Stale, message{})
	require.False(t, c.view("GO-USD").valid)
	require.Equal(t, "stale", c.view("GO-USD").String())
	require.Equal(t, levels{9990: 5, 9980: 3}, c.view("GO-USD").bids)
}

func TestABookOfWhichUpdatesAreLostIsNotValidBeforeTheNextSnapshot(t *testing.T) {
	c := reader(t)
	c.happens(replay.Stale, message{})
	c.happens(replay.Lost, message{Seq: 40})
	c.happens(replay.Live, message{Seq: 41, Bids: levels{9990: 8}})
	c.happens(replay.Healed, message{Seq: 41})
	require.False(t, c.view("GO-USD").valid)
	c.happens(replay.Snapshot, snapshot)
	require.True(t, c.view("GO-USD").valid)
}

func TestASnapshotLeavesNothingOfTheOldBook(t *testing.T) {
	c := reader(t)
	c.happens(replay.Snapshot, snapshot)
	c.happens(replay.Live, message{Seq: 41, Bids: levels{9970: 9}})
	c.happens(replay.Snapshot, snapshot)
	require.Equal(t, view{true, 1, 40, levels{9990: 5, 9980: 3}, levels{10010: 2}}, c.view("GO-USD"), "no ghost at 9970")
}

func TestAViewIsACopy(t *testing.T) {
	c := reader(t)
	c.happens(replay.Snapshot, snapshot)
	v := c.view("GO-USD")
	c.happens(replay.Live, message{Seq: 41, Bids: levels{9990: 0}})
	require.Equal(t, 5, v.bids[9990])
	require.Equal(t, 5, snapshot.Bids[9990], "nor does the book share the message")
}

func TestWhatIsNotWantedHasNoBook(t *testing.T) {
	c := reader(t)
	c.happens(replay.Snapshot, snapshot)
	require.Equal(t, []string{"GO-USD"}, c.symbols())
	c.want("ADA-USD")
	require.Empty(t, c.symbols())
	c.happens(replay.Live, message{Seq: 41, Bids: levels{9990: 0}})
	require.Empty(t, c.symbols(), "nor does an update that comes late make one")
	_, _, ok := c.bridge.Cursor("GO-USD")
	require.False(t, ok)
}
