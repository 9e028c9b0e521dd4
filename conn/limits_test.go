package conn

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestZeroOptionsAreTheDefaults(t *testing.T) {
	limits := Limits{ReadLimit: 16 << 20, WriteTimeout: 10 * time.Second, MessageTimeout: time.Minute}
	for _, o := range []*WebSocketOptions{nil, {}} {
		require.NoError(t, o.Validate())
		require.Equal(t, WebSocketOptions{Limits: limits}, o.withDefaults())
	}
	for _, o := range []*FramedOptions{nil, {}} {
		require.NoError(t, o.Validate())
		require.Equal(t, FramedOptions{Limits: limits, Type: Binary}, o.withDefaults())
	}
}

func TestNegativeReadLimitIsRefusedByName(t *testing.T) {
	o := &WebSocketOptions{Limits: Limits{ReadLimit: -1}}
	require.EqualError(t, o.Validate(), "conn: option ReadLimit is -1: want a size in bytes, or 0 for 16777216")
	require.EqualValues(t, 16<<20, o.withDefaults().ReadLimit, "never without a limit")
	require.Equal(t, o.Validate(), (&FramedOptions{Limits: o.Limits}).Validate())
}

func TestLargestReadLimitIsNotMinusOne(t *testing.T) {
	o := &WebSocketOptions{Limits: Limits{ReadLimit: math.MaxInt64}}
	require.EqualValues(t, math.MaxInt-1, o.withDefaults().ReadLimit)
	l := plain(t, o)
	l.send(frame(fin|text, "x"))
	_, err := l.Read(nil)
	require.NoError(t, err)
}
