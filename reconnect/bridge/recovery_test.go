package bridge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

// The recovery rules of other protocols, in terms of a Cursor. The sources are named at each.
func TestRecoveryRulesOfACursor(t *testing.T) {
	const next, seen, gap, epoch = bridge.PlacementNext, bridge.PlacementSeen, bridge.PlacementGap, bridge.PlacementNewEpoch
	for _, c := range []struct {
		rule  string
		at    bridge.Cursor
		epoch string
		takes []uint64
		want  []bridge.Placement
	}{
		// @microsoft/signalr, MessageBuffer.ts: both sides count from 1; after a reconnect the
		// peer sends again from the first message that was not acknowledged.
		{"SignalR: ids that were seen are dropped", bridge.Cursor{Offset: 5}, "", []uint64{4, 5, 6, 7}, []bridge.Placement{seen, seen, next, next}},
		{"SignalR: a number ahead of us is a broken peer", bridge.Cursor{Offset: 5}, "", []uint64{8}, []bridge.Placement{gap}},
		// centrifuge-go, subscription.go: epoch and offset for each subscription.
		{"Centrifugo: publications after the offset are recovered", bridge.Cursor{Epoch: "x", Offset: 10}, "x", []uint64{11, 12}, []bridge.Placement{next, next}},
		{"Centrifugo: offsets of another epoch mean nothing", bridge.Cursor{Epoch: "x", Offset: 10}, "y", []uint64{11}, []bridge.Placement{epoch}},
		// Ably's specification, RTN19 and RTN7: serials go on only if the resume has succeeded.
		{"Ably: after a resume the serials go on", bridge.Cursor{Epoch: "conn1", Offset: 3}, "conn1", []uint64{4}, []bridge.Placement{next}},
		{"Ably: without a resume they begin anew", bridge.Cursor{Epoch: "conn1", Offset: 3}, "conn2", []uint64{0, 1}, []bridge.Placement{epoch, epoch}},
		// Discord's gateway: the events that were missed are replayed in order, after the sequence
		// number in the resume.
		{"Discord: a resume replays what came after the sequence", bridge.Cursor{Epoch: "session", Offset: 42}, "session", []uint64{43, 44}, []bridge.Placement{next, next}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			for i, n := range c.takes {
				require.Equal(t, c.want[i], c.at.Take(c.epoch, n), "%d", n)
			}
		})
	}
}

// The recovery rules of other protocols, in terms of a Bridge that has got the numbers 1 to 5.
func TestRecoveryRulesOfABridge(t *testing.T) {
	lost := reconnect.Seam{Lost: 1}
	for _, c := range []struct {
		rule     string
		past     bool
		snapshot bool
		store    store
		play     func(s *scene)
		want     []string
	}{
		// socket.io, "Connection state recovery": with socket.recovered the missed packets come by
		// the new connection; OnSession calls Opening.Resumed.
		{"socket.io: recovered", true, false, store{last: 7}, func(s *scene) {
			s.seam(reconnect.Seam{Lost: 1, Resumed: true})
			s.live("a", 6, 7, 8)
		}, []string{"a: live 6", "a: live 7", "a: live 8"}},
		// The same page: else the client must synchronize its state.
		{"socket.io: not recovered", false, true, store{last: 7}, func(s *scene) {
			s.seam(lost)
			s.live("a", 8)
		}, []string{"a: stale 6-", "a: snapshot 7", "a: healed 7", "a: live 8"}},
		// socket.io#5538: volatile events have no offset.
		{"socket.io: an event without an offset passes a gap", true, false, store{last: 8, takes: time.Second}, func(s *scene) {
			s.live("a", 8)
			s.live("a", 0)
		}, []string{"a: stale 6-7", "a: live 0", "a: past 6", "a: past 7", "a: live 8", "a: healed 8"}},
		// centrifuge-go, subscription.go: recovered is false.
		{"Centrifugo: not recovered, the history is asked", true, true, store{last: 7}, func(s *scene) {
			s.seam(lost)
			s.live("a", 8)
		}, []string{"a: stale 6-", "a: past 6", "a: past 7", "a: healed 7", "a: live 8"}},
		// centrifuge-go, error 112, unrecoverable position: begin anew from the state.
		{"Centrifugo: unrecoverable position", true, true, store{from: 20, last: 27}, func(s *scene) {
			s.seam(lost)
			s.live("a", 28)
		}, []string{"a: stale 6-", "a: snapshot 27", "a: healed 27", "a: live 28"}},
		{"Centrifugo: a new epoch", true, true, store{epoch: "y", last: 2}, func(s *scene) {
			s.send(item{Key: "a", Epoch: "y", Last: 3})
		}, []string{"a: stale 6-", "a: snapshot 2@y", "a: live 3@y", "a: healed 3@y"}},
		// Ably's specification, RTL18 and "untilAttach": without the resumed flag, history up to
		// the point of attachment.
		{"Ably: the flag says that continuity was lost", true, false, store{last: 8, takes: time.Second}, func(s *scene) {
			s.seam(lost)
			s.live("a", 9)
		}, []string{"a: stale 6-", "a: past 6", "a: past 7", "a: past 8", "a: live 9", "a: healed 9"}},
		// Binance, "How to manage a local order book": drop what the snapshot contains; the first
		// update has to contain the number after it.
		{"Binance: updates that a snapshot contains are dropped", false, true, store{last: 12, takes: time.Second}, func(s *scene) {
			s.seam(lost)
			s.send(item{Key: "a", First: 8, Last: 10})
			s.send(item{Key: "a", First: 11, Last: 14})
		}, []string{"a: stale 6-", "a: snapshot 12", "a: live 14", "a: healed 14"}},
		// A capped page leaves a hole if it is taken for all of the past.
		{"pages go on until they meet what is held", true, false, store{last: 99, page: 2, takes: time.Second}, func(s *scene) {
			s.live("a", 11)
		}, []string{"a: stale 6-10", "a: past 6", "a: past 7", "a: past 8", "a: past 9", "a: past 10", "a: live 11", "a: healed 11"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			o := &bridge.Options[string, string]{}
			p := c.store
			if c.past {
				o.Past = p.past
			}
			if c.snapshot {
				o.Snapshot = p.snapshot
			}
			inScene(t, o, func(s *scene) {
				p.s = s
				s.send(item{Key: "a", Last: 5, Snapshot: true})
				s.want("a: snapshot 5")
				c.play(s)
				time.Sleep(9 * time.Second)
				s.want(c.want...)
			})
		})
	}
}
