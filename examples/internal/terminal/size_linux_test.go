package terminal

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADeviceThatIsNoTerminalIsNone(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	require.False(t, Is(null))
	require.Equal(t, 80, columns(null))
}
