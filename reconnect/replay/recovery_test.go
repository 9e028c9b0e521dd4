package replay_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/replay"
)

// The recovery rules of other protocols, in terms of a Cursor. The sources are named at each.
func TestRecoveryRulesOfACursor(t *testing.T) {
	const next, seen, gap, epoch = replay.Next, replay.Seen, replay.Gap, replay.NewEpoch
	for _, c := range []struct {
		rule  string
		at    replay.Cursor
		epoch string
		takes []uint64
		want  []replay.Step
	}{
		// @microsoft/signalr, MessageBuffer.ts: both sides count from 1; after a reconnect the
		// peer sends again from the first message that was not acknowledged.
		{"SignalR: ids that were seen are dropped", replay.Cursor{Offset: 5}, "", []uint64{4, 5, 6, 7}, []replay.Step{seen, seen, next, next}},
		{"SignalR: a number ahead of us is a broken peer", replay.Cursor{Offset: 5}, "", []uint64{8}, []replay.Step{gap}},
		// centrifuge-go, subscription.go: epoch and offset for each subscription.
		{"Centrifugo: publications after the offset are recovered", replay.Cursor{Epoch: "x", Offset: 10}, "x", []uint64{11, 12}, []replay.Step{next, next}},
		{"Centrifugo: offsets of another epoch mean nothing", replay.Cursor{Epoch: "x", Offset: 10}, "y", []uint64{11}, []replay.Step{epoch}},
		// Ably's specification, RTN19 and RTN7: serials go on only if the resume has succeeded.
		{"Ably: after a resume the serials go on", replay.Cursor{Epoch: "conn1", Offset: 3}, "conn1", []uint64{4}, []replay.Step{next}},
		{"Ably: without a resume they begin anew", replay.Cursor{Epoch: "conn1", Offset: 3}, "conn2", []uint64{0, 1}, []replay.Step{epoch, epoch}},
		// Discord's gateway: the events that were missed are replayed in order, after the sequence
		// number in the resume.
		{"Discord: a resume replays what came after the sequence", replay.Cursor{Epoch: "session", Offset: 42}, "session", []uint64{43, 44}, []replay.Step{next, next}},
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
			o := &replay.BridgeOptions[string, string]{}
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

// The recovery rules of other protocols for what the client sends, in terms of a Ledger. It has
// sent a, b and c, and the peer has acknowledged a. Then the connection was lost. What is sent as
// "again" repeats a number, which MQTT shows by DUP.
func TestRecoveryRulesOfALedger(t *testing.T) {
	for _, c := range []struct {
		rule  string
		reset replay.Reset
		have  uint64
		same  bool
		sent  string
		done  []string
	}{
		// @microsoft/signalr, MessageBuffer.ts: after a reconnect both sides send again from the
		// first message that was not acknowledged, and new ones after those.
		{"SignalR: the first unacknowledged message and all after it go again", replay.Renumber, 0, true, "2:b again, 3:c again, 4:d", nil},
		// socket.io, the client's option retries: packets wait for their acknowledgements in order.
		// Its connection state recovery does not cover what the client sends.
		{"socket.io: what has no acknowledgement goes again", replay.KeepNumbers, 0, false, "2:b again, 3:c again, 4:d", nil},
		// Ably's specification, RTN19a2: the same serials only if the resume has succeeded.
		{"Ably: resumed, the serials stay", replay.Renumber, 1, true, "2:b again, 3:c again, 4:d", nil},
		{"Ably: not resumed, new serials", replay.Renumber, 0, false, "1:b, 2:c, 3:d", nil},
		// The same, RTN7: what is pending fails when the connection's state is gone.
		{"Ably: the state is gone, pending messages fail", replay.Report, 0, false, "1:d", []string{"2 forgotten by the peer", "3 forgotten by the peer"}},
		// MQTT 3.1.1, section 4.4: with session present the same packet identifiers, and DUP.
		{"MQTT: session present", replay.Renumber, 1, true, "2:b again, 3:c again, 4:d", nil},
		// The Live API of Gemini, lastConsumedClientMessageIndex.
		{"Gemini: the handle covers the messages up to an index", replay.Renumber, 2, true, "3:c again, 4:d", []string{"2 acknowledged"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			withLedger(t, replay.LedgerOptions{OnReset: c.reset}, func(t *testing.T, s *ledgerScene) {
				s.open()
				peer := s.accept()
				s.add("a", "b", "c")
				require.NoError(t, s.ledger.AckedTo(1, 1))
				require.Equal(t, []string{"1 acknowledged"}, s.outcomes())
				peer.Fail(errLedgerLost)
				s.resume = resumed(s.ledger, c.have, c.same)
				peer = s.accept()
				s.add("d")
				require.Equal(t, c.sent, sent(peer))
				require.Equal(t, c.done, s.outcomes())
				// SignalR ends a connection whose peer acknowledges what was never sent.
				seq, _ := errors.AsType[*replay.SeqError](s.ledger.AckedTo(2, 9))
				require.NotNil(t, seq)
			})
		})
	}
}
