//go:build !js

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/replay"
)

// applied returns an event of GO-USD, by a session whose connection has the number conn.
func applied(kind replay.Kind, session, conn, seq uint64) *event {
	return &event{Kind: kind, Session: session, Item: replay.Item[string, message]{Key: "GO-USD", Last: seq, Value: message{Conn: conn}}}
}

func TestASnapshotMakesAStaleBookValidAndTellsHowManyItHasMissed(t *testing.T) {
	a := newAudit()
	for _, step := range []struct {
		e      *event
		resync bool
		missed uint64
	}{
		{applied(replay.Snapshot, 1, 7, 40), true, 0},
		{applied(replay.Live, 1, 7, 41), false, 0},
		{applied(replay.Stale, 0, 0, 0), false, 0},
		{applied(replay.Snapshot, 2, 9, 50), true, 9},
		{applied(replay.Live, 2, 9, 51), false, 0},
		{applied(replay.Snapshot, 3, 10, 49), false, 0}, // of a session that has replaced another
		{applied(replay.Live, 3, 10, 50), false, 0},
		{applied(replay.Healed, 0, 0, 50), false, 0},
		{&event{Kind: replay.Other, Session: 1, Err: &reconnect.Seam{Session: 1}}, false, 0},
	} {
		resync, missed := a.event(step.e)
		require.Equal(t, step.resync, resync, step.e)
		require.Equal(t, step.missed, missed, step.e)
		require.NoError(t, a.result())
	}
}

func TestWhatIsAppliedWronglyIsFound(t *testing.T) {
	for _, c := range []struct {
		message string
		wrong   []*event
	}{
		{"GO-USD: update 40 was applied where 41 was due", []*event{applied(replay.Live, 1, 7, 40)}},
		{"GO-USD: update 42 was applied where 41 was due", []*event{applied(replay.Live, 1, 7, 42)}},
		{"GO-USD: update 41 was applied where 41 was due", []*event{applied(replay.Stale, 0, 0, 0), applied(replay.Live, 1, 7, 41)}},
		{"message of session 1 (connection 8) after one of session 1 (7)", []*event{applied(replay.Live, 1, 8, 41)}},
		{"message of session 1 (connection 7) after one of session 2 (9)", []*event{applied(replay.Snapshot, 2, 9, 50), applied(replay.Live, 1, 7, 51)}},
	} {
		a := newAudit()
		a.event(applied(replay.Snapshot, 1, 7, 40))
		for _, e := range c.wrong {
			require.NoError(t, a.result())
			a.event(e)
		}
		require.EqualError(t, a.result(), c.message)
		a.event(applied(replay.Live, 1, 7, 1000))
		require.EqualError(t, a.result(), c.message, "the first error stays")
	}
}
