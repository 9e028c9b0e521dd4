package bridge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/bridge"
	"github.com/redial-go/redial/reconnect/budget"
)

func TestWrongBridgeOptionsAreNamed(t *testing.T) {
	p := &store{}
	for want, o := range map[string]*options{
		"Parse is missing":                       {},
		"BridgeOptions.Messages: -1":             {Parse: parseItem, Messages: -1},
		"BridgeOptions.Bytes: -1":                {Parse: parseItem, Bytes: -1},
		"BridgeOptions.Fetches: -1":              {Parse: parseItem, Fetches: -1},
		"BridgeOptions.Streams: -1":              {Parse: parseItem, Streams: -1},
		"BridgeOptions.Timeout: -1s":             {Parse: parseItem, Timeout: -time.Second},
		"BridgeOptions.Snapshot and Ask":         {Parse: parseItem, Snapshot: p.snapshot, Ask: p.ask},
		"BridgeOptions.Pace: budget: Window.Per": {Parse: parseItem, Pace: budget.Window{N: 1}},
	} {
		_, err := bridge.NewBridge(o)
		require.ErrorContains(t, err, want)
	}
	_, err := bridge.NewBridge[string, string](nil)
	require.Error(t, err)
}
