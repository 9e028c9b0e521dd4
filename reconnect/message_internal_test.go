package reconnect

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A goroutine that OnSession has left behind may hold the mark just after it has come.
func TestAMarkThatHasComeIsNotHeld(t *testing.T) {
	m := &mark{holds: 1}
	require.True(t, m.hold())
	require.False(t, m.release(nil), "the session itself holds it")
	require.True(t, m.release(nil))
	require.False(t, m.hold())
	ended := &mark{holds: 1}
	ended.over = true
	require.False(t, ended.hold())
}
