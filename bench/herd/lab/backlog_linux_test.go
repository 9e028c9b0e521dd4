package lab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABacklogIsAsLongAsAsked(t *testing.T) {
	s, err := setup{Address: "127.0.0.1:0", Backlog: 7}.open()
	require.NoError(t, err)
	defer s.listener.Close()
	require.Equal(t, 7, s.report().Backlog)
}
