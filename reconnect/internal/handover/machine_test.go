package handover

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The successor has lost its first session, and the second one has not resumed the stream.
func TestTheFirstSessionOfTheSuccessorSaysWhetherItResumed(t *testing.T) {
	m := New(Hold)
	require.Equal(t, BeginDial, m.Begin(false))
	require.Equal(t, LeadTakes, m.NextReady(true, false))
	require.Equal(t, LeadKeeps, m.NextReady(false, false))
	require.True(t, m.Resumed())
}
