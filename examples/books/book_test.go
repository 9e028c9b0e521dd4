//go:build !js

package books

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
	"github.com/redial-go/redial/reconnect/subscription"
)

// reader returns a client without a connection that wants GO-USD.
func reader(t testing.TB) *Client {
	set, err := subscription.New(&subscription.Options[string]{Encode: encode, Answer: answer})
	require.NoError(t, err)
	set.Add("GO-USD")
	bridge, err := bridge.New(&bridge.Options[string, venue.Message]{Parse: func(reconnect.Message) (it bridge.Item[string, venue.Message], ok bool) { return it, false }})
	require.NoError(t, err)
	return &Client{Set: set, Bridge: bridge, books: map[string]*Book{}}
}

// happens has the client apply an event of the venue's connection 7.
func (c *Client) happens(kind bridge.Kind, m venue.Message) {
	m.Book = "GO-USD"
	c.change(&Event{Kind: kind, Session: 1, Item: bridge.Item[string, venue.Message]{Key: m.Book, Last: m.Seq, Value: m}})
}

var snapshot = venue.Message{Seq: 40, Bids: venue.Levels{9990: 5, 9980: 3}, Asks: venue.Levels{10010: 2}}

func TestABookIsASnapshotAndTheUpdatesSince(t *testing.T) {
	c := reader(t)
	c.happens(bridge.EventSnapshot, snapshot)
	c.happens(bridge.EventLive, venue.Message{Seq: 41, Bids: venue.Levels{9990: 8}})
	c.happens(bridge.EventLive, venue.Message{Seq: 42, Bids: venue.Levels{9980: 0}})
	c.happens(bridge.EventLive, venue.Message{Seq: 43, Asks: venue.Levels{10020: 4}})
	require.Equal(t, Book{Book: venue.Book{Seq: 43, Bids: venue.Levels{9990: 8}, Asks: venue.Levels{10010: 2, 10020: 4}}, Session: 1}, c.View("GO-USD"))
}

func TestABookIsValidFromASnapshotUntilItIsStaleAndAgainWhenItIsHealed(t *testing.T) {
	c := reader(t)
	require.False(t, c.valid("GO-USD"), "there is none")
	c.happens(bridge.EventStale, venue.Message{})
	require.False(t, c.valid("GO-USD"))
	c.happens(bridge.EventSnapshot, snapshot)
	require.False(t, c.valid("GO-USD"), "it may be too old")
	c.happens(bridge.EventHealed, venue.Message{})
	require.True(t, c.valid("GO-USD"))
	c.happens(bridge.EventStale, venue.Message{})
	require.False(t, c.valid("GO-USD"))
	require.Equal(t, venue.Levels{9990: 5, 9980: 3}, c.View("GO-USD").Bids)
}

func TestABookOfWhichUpdatesAreLostIsNotValidBeforeTheNextSnapshot(t *testing.T) {
	c := reader(t)
	c.happens(bridge.EventStale, venue.Message{})
	c.happens(bridge.EventLost, venue.Message{Seq: 40})
	c.happens(bridge.EventLive, venue.Message{Seq: 41, Bids: venue.Levels{9990: 8}})
	c.happens(bridge.EventHealed, venue.Message{Seq: 41})
	require.False(t, c.valid("GO-USD"))
	c.happens(bridge.EventSnapshot, snapshot)
	require.True(t, c.valid("GO-USD"))
}

func TestASnapshotLeavesNothingOfTheOldBook(t *testing.T) {
	c := reader(t)
	c.happens(bridge.EventSnapshot, snapshot)
	c.happens(bridge.EventLive, venue.Message{Seq: 41, Bids: venue.Levels{9970: 9}})
	c.happens(bridge.EventSnapshot, snapshot)
	require.Equal(t, Book{Book: venue.Book{Seq: 40, Bids: venue.Levels{9990: 5, 9980: 3}, Asks: venue.Levels{10010: 2}}, Session: 1}, c.View("GO-USD"), "no ghost at 9970")
}

func TestAViewIsACopy(t *testing.T) {
	c := reader(t)
	c.happens(bridge.EventSnapshot, snapshot)
	v := c.View("GO-USD")
	c.happens(bridge.EventLive, venue.Message{Seq: 41, Bids: venue.Levels{9990: 0}})
	require.Equal(t, 5, v.Bids[9990])
	require.Equal(t, 5, snapshot.Bids[9990], "nor does the book share the message")
}

func TestWhatIsNotWantedHasNoBook(t *testing.T) {
	c := reader(t)
	c.happens(bridge.EventSnapshot, snapshot)
	require.Len(t, c.books, 1)
	c.Want("ADA-USD")
	require.Empty(t, c.books)
	c.happens(bridge.EventLive, venue.Message{Seq: 41, Bids: venue.Levels{9990: 0}})
	require.Empty(t, c.books, "nor does an update that comes late make one")
}
