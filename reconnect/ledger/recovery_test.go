package ledger_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/ledger"
)

// The recovery rules of other protocols for what the client sends, in terms of a Ledger. It has
// sent a, b and c, and the peer has acknowledged a. Then the connection was lost. What is sent as
// "again" repeats a number, which MQTT shows by DUP.
func TestRecoveryRulesOfALedger(t *testing.T) {
	for _, c := range []struct {
		rule  string
		reset ledger.Reset
		have  uint64
		same  bool
		sent  string
		done  []string
	}{
		// @microsoft/signalr, MessageBuffer.ts: after a reconnect both sides send again from the
		// first message that was not acknowledged, and new ones after those.
		{"SignalR: the first unacknowledged message and all after it go again", ledger.ResetRenumber, 0, true, "2:b again, 3:c again, 4:d", nil},
		// socket.io, the client's option retries: packets wait for their acknowledgements in order.
		// Its connection state recovery does not cover what the client sends.
		{"socket.io: what has no acknowledgement goes again", ledger.ResetKeepNumbers, 0, false, "2:b again, 3:c again, 4:d", nil},
		// Ably's specification, RTN19a2: the same serials only if the resume has succeeded.
		{"Ably: resumed, the serials stay", ledger.ResetRenumber, 1, true, "2:b again, 3:c again, 4:d", nil},
		{"Ably: not resumed, new serials", ledger.ResetRenumber, 0, false, "1:b, 2:c, 3:d", nil},
		// The same, RTN7: what is pending fails when the connection's state is gone.
		{"Ably: the state is gone, pending messages fail", ledger.ResetReport, 0, false, "1:d", []string{"2 forgotten by the peer", "3 forgotten by the peer"}},
		// MQTT 3.1.1, section 4.4: with session present the same packet identifiers, and DUP.
		{"MQTT: session present", ledger.ResetRenumber, 1, true, "2:b again, 3:c again, 4:d", nil},
		// The Live API of Gemini, lastConsumedClientMessageIndex.
		{"Gemini: the handle covers the messages up to an index", ledger.ResetRenumber, 2, true, "3:c again, 4:d", []string{"2 acknowledged"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			withLedger(t, ledger.Options{OnReset: c.reset}, func(t *testing.T, s *ledgerScene) {
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
				seq, _ := errors.AsType[*ledger.SeqError](s.ledger.AckedTo(2, 9))
				require.NotNil(t, seq)
			})
		})
	}
}
