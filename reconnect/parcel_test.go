package reconnect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// parcel is one message of a [model], and what became of it.
type parcel struct {
	id            string
	actor, number int
	order         int // of acceptance; 0: by Write
	out           reconnect.Out
	due           time.Time // too late; zero: never
	refused       error
	fates         []reconnect.Receipt
	handed        []uint64 // the sessions that may have got it
	whole         int      // those of them that said so
	arrived       []uint64 // the sessions by which the peer got it, whole
	begun         bool     // the peer got something of it
}

// check compares the fate of a message with what happened to it.
func (p *parcel) check(t *testing.T) {
	got := p.fates[0]
	story := []any{"%s: %v by %d, handed to %v, arrived by %v", p.id, got.Fate, got.Session, p.handed, p.arrived}
	switch got.Fate {
	case reconnect.FateWritten:
		require.Equal(t, 1, p.whole, story...)
	case reconnect.FateUnknown:
		require.NotEmpty(t, p.handed, story...)
		require.Zero(t, p.whole, story...)
	case reconnect.FateDropped:
		require.Empty(t, p.handed, story...)
		require.Empty(t, p.arrived, story...)
		require.False(t, p.begun, story...)
	}
	if p.order > 0 {
		require.Equal(t, len(p.handed), got.Tries, p.id)
	}
	if !p.out.Repeatable {
		require.LessOrEqual(t, len(p.handed), 1, "%s was sent again", p.id)
	}
	for _, session := range p.arrived {
		require.Contains(t, p.handed, session, "%s arrived by a session that it was not given to", p.id)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(p.arrived))), len(p.arrived), "%s arrived twice by one session", p.id)
	if p.out.Session != 0 {
		for _, session := range p.handed {
			require.Equal(t, p.out.Session, session, "%s was sent by another session", p.id)
		}
	}
}
