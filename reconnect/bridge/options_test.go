package bridge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/bridge"
)

func TestWrongOptionsAreNamed(t *testing.T) {
	p := &store{}
	for want, o := range map[string]*options{
		"Parse is missing":         {},
		"Options.Messages: -1":     {Parse: parseItem, Messages: -1},
		"Options.Bytes: -1":        {Parse: parseItem, Bytes: -1},
		"Options.Fetches: -1":      {Parse: parseItem, Fetches: -1},
		"Options.Streams: -1":      {Parse: parseItem, Streams: -1},
		"Options.Timeout: -1s":     {Parse: parseItem, Timeout: -time.Second},
		"Options.Snapshot and Ask": {Parse: parseItem, Snapshot: p.snapshot, Ask: p.ask},
	} {
		_, err := bridge.New(o)
		require.ErrorContains(t, err, want)
	}
	_, err := bridge.New[string, string](nil)
	require.Error(t, err)
}

func TestDefaultsAreAsDocumented(t *testing.T) {
	b, err := bridge.New(&options{Parse: parseItem})
	require.NoError(t, err)
	o := b.Options()
	require.Equal(t, []int{4096, 16 << 20, 4, 65536}, []int{o.Messages, o.Bytes, o.Fetches, o.Streams})
	require.Equal(t, []time.Duration{10 * time.Second, 10 * time.Second}, []time.Duration{o.Timeout, o.Patience})
}
